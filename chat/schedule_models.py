"""Prompts that are sent by themselves, at times that their owner chose."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.ids import uuid7


class Repeats(models.TextChoices):
    ONCE = "once", _("Once")
    DAILY = "daily", _("Every day")
    WEEKLY = "weekly", _("On days of the week")
    MONTHLY = "monthly", _("Every month")


class Schedule(models.Model):
    """`text` is sent as its owner's message: each time in a new chat, or with `is_one_chat` always in
    `conversation`, which the first time begins. `assistant_id` is that of the chats that it begins. A
    blank `model` is the chat's, the assistant's or whatever is usual then.

    `on`, `weekdays` and `day` are each for one way to repeat (schedule_times.py). `next_at` is when it
    is due; None: never again. `wait_until` is when what is due is tried again, where something was in
    its way `num_tries` times. `last_problem` is why it was not sent the last time, `num_failed` how
    often in a row.
    """

    MAX_NAME_CHARS = 80
    MAX_TEXT_CHARS = 20_000

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=MAX_NAME_CHARS)
    text = models.TextField()
    model = models.CharField(max_length=200, blank=True)
    assistant_id = models.UUIDField(null=True, blank=True)
    is_one_chat = models.BooleanField(default=True)
    conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    repeats = models.CharField(max_length=8, choices=Repeats.choices)
    at = models.TimeField()
    zone = models.CharField(max_length=64)
    on = models.DateField(null=True, blank=True)
    weekdays = ArrayField(models.PositiveSmallIntegerField(), default=list, blank=True)
    day = models.PositiveSmallIntegerField(default=1)

    is_on = models.BooleanField(default=True)
    next_at = models.DateTimeField(null=True, blank=True)
    wait_until = models.DateTimeField(default=timezone.now)
    num_tries = models.PositiveSmallIntegerField(default=0)
    last_at = models.DateTimeField(null=True, blank=True)
    last_problem = models.CharField(max_length=300, blank=True)
    num_failed = models.PositiveSmallIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "name"], name="schedule_by_name"),
            models.Index(fields=["next_at"], name="schedule_due", condition=models.Q(is_on=True)),
        ]

    def __str__(self) -> str:
        return f"schedule {self.id}"
