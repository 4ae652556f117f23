"""Batches of /v1/batches: many requests in a file, answered while nobody waits for them."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat.ids import uuid7


class BatchStatus(models.TextChoices):
    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


UNFINISHED_BATCHES = (
    BatchStatus.VALIDATING,
    BatchStatus.IN_PROGRESS,
    BatchStatus.FINALIZING,
    BatchStatus.CANCELLING,
)


class Batch(models.Model):
    """The requests of `input_file`, each a line of it, and how far they are.

    `api_key_id` is whose rights it has beside its owner's; null: those of a person alone. `errors`
    say why it failed or was stopped, as OpenAI lists them. The counts of lines and tokens are of
    those whose results are kept. The lease names the process that works on it: when it runs out,
    another takes it up; `attempts` counts how often, since a line was answered. Files are no foreign
    keys, for any of them may be deleted alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    api_key_id = models.BigIntegerField(null=True)
    endpoint = models.CharField(max_length=64)
    model = models.CharField(max_length=200, blank=True)
    metadata = models.JSONField(null=True)
    output_expires_s = models.PositiveIntegerField(null=True)
    input_file = models.UUIDField()
    output_file = models.UUIDField(null=True)
    error_file = models.UUIDField(null=True)
    status = models.CharField(
        max_length=16, choices=BatchStatus.choices, default=BatchStatus.VALIDATING
    )
    errors = models.JSONField(default=list)

    num_lines = models.PositiveIntegerField(default=0)
    num_completed = models.PositiveIntegerField(default=0)
    num_failed = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)

    created_at = models.DateTimeField(default=timezone.now)
    in_progress_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    finalizing_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    expired_at = models.DateTimeField(null=True)
    cancelling_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)

    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "batches"
        indexes = [
            models.Index(fields=["owner", "-id"], name="batch_recent"),
            models.Index(
                fields=["lease_until"],
                name="batch_unfinished",
                condition=models.Q(status__in=UNFINISHED_BATCHES),
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        return f"batch_{self.pk.hex}"


class BatchResult(models.Model):
    """What became of one line, as it will stand in a file of the batch; gone once it stands there.

    `number` is the line's, from 1.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="results")
    number = models.PositiveIntegerField()
    is_error = models.BooleanField()
    text = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["batch", "number"], name="batch_line_answered_once")
        ]

    def __str__(self) -> str:
        return f"line {self.number} of {self.batch_id}"
