"""What was decided about texts, what people and reviewers say to it, and what it costs who did it."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, When

from moderation.appealed import Appealed

OUR_OWN = ("title", "summary", "question")
"""Sources of what nobody has asked: the site does, by itself."""

SOURCES = ("chat", "temporary", "api", *OUR_OWN)

STOPPED = ("redact", "ask", "block")
"""Actions that whoever wrote the text sees something of."""


class Review(models.TextChoices):
    """Where the review of a decision stands; the empty string: nobody is to look at it."""

    OPEN = "open", "waits for a decision"
    UPHELD = "upheld", "was right"
    OVERTURNED = "overturned", "was wrong"


QUEUE_ORDER = (
    Case(When(review=Review.OPEN, then=F("created_at"))).asc(nulls_last=True),
    F("created_at").desc(),
)
"""Of the console's list: what waits comes first, the oldest at the top; then the newest."""


class Decision(Appealed):
    """A verdict on one text: of a question, an answer, a document or a tool's result.

    `owner` is whose text it was. `source` is the way that it came: chat, temporary, api, or of OUR_OWN.
    `reasons` are policies.Reason as JSON, strongest first; `failed` the classifiers that could not be
    asked, as {"classifier", "reason"}. With `is_dry_run` nothing of it was done. `text` is kept where a
    person may have to look at it (what was blocked, asked about or sent to review), and is "" elsewhere.
    `text_hashes` (text_hashes.py) are of all texts that it is about, that of `text` first, if it is
    kept.
    `conversation_id` and `message_id` lead to the place in a chat, as long as that is there.
    `labels` are the categories that a reviewer found right: feedback to calibrate with.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="moderation_decisions"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    stage = models.CharField(max_length=16)
    source = models.CharField(max_length=16)
    model = models.CharField(max_length=200, blank=True)
    api_key_id = models.BigIntegerField(null=True, blank=True)
    policy_id = models.UUIDField(null=True, blank=True)
    policy_name = models.CharField(max_length=80, blank=True)
    policy_version = models.PositiveIntegerField(default=0)
    is_dry_run = models.BooleanField(default=False)
    action = models.CharField(max_length=16)
    reasons = models.JSONField(default=list)
    scores = models.JSONField(default=dict)
    failed = models.JSONField(default=list)
    conversation_id = models.UUIDField(null=True, blank=True)
    message_id = models.UUIDField(null=True, blank=True)
    run_id = models.CharField(max_length=64, blank=True)
    text = models.TextField(blank=True)
    text_hashes = ArrayField(models.CharField(max_length=64), null=True, editable=False)
    # review
    review = models.CharField(max_length=16, choices=Review.choices, blank=True)
    labels = ArrayField(models.CharField(max_length=40), null=True, blank=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["owner", "-created_at"], name="decision_of_owner"),
            models.Index(fields=["-created_at"], name="decision_recent"),
            models.Index(
                fields=["created_at"],
                name="decision_open",
                condition=models.Q(review=Review.OPEN),
            ),
            models.Index(*QUEUE_ORDER, name="decision_queue"),
            models.Index(
                fields=["owner", "-created_at"],
                name="decision_stopped",
                condition=models.Q(action__in=STOPPED, is_dry_run=False),
            ),
            models.Index(
                fields=["owner"],
                name="decision_overturned",
                condition=models.Q(review=Review.OVERTURNED),
            ),
        ]

    def __str__(self) -> str:
        return f"decision {self.id}"


class Strike(models.Model):
    """What a blocked text counts against its owner. `points` lose half of their weight in a while
    (strikes.py); `lifted_at`: they do not count any more, since a reviewer found the decision wrong."""

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="strikes"
    )
    decision = models.OneToOneField(
        Decision, on_delete=models.CASCADE, related_name="strike", null=True
    )
    points = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["owner", "created_at"],
                name="strike_counting",
                condition=models.Q(lifted_at=None),
            )
        ]

    def __str__(self) -> str:
        return f"{self.points:g} points"
