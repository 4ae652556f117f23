"""Links to branches of chats."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat.ids import uuid7


class ShareKind(models.TextChoices):
    """`snapshot` ends at its message for ever; `live` goes on with the branch behind it."""

    SNAPSHOT = "snapshot"
    LIVE = "live"


class Share(models.Model):
    """A link to a branch: from the root to `message`. To revoke it is to delete the row.

    Readers do not see this row; they see what the SQL function chat_read_share (in the newest migration
    that has it) makes of it for whoever knows the token. `shown_name` is blank unless the owner wants to
    be named. `sealed_token` (sealing.py) is blank while a SECRET_KEY that is known makes the token anew
    (sharing.py).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="shares"
    )
    conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.CASCADE, related_name="shares"
    )
    message = models.ForeignKey("chat.Message", on_delete=models.CASCADE, related_name="shares")
    kind = models.CharField(max_length=16, choices=ShareKind.choices)
    title = models.CharField(max_length=200, blank=True)
    shown_name = models.CharField(max_length=120, blank=True)
    with_steps = models.BooleanField(default=False)
    token_hash = models.CharField(max_length=64, unique=True)
    sealed_token = models.TextField(blank=True, default="", editable=False)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "-id"], name="share_recent")]

    def __str__(self) -> str:
        return f"share {self.id}"

    @property
    def has_ended(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()
