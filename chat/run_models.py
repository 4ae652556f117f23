"""The runs that write answers: their state, what the engine was asked, and their log.

`Generation` is the durable state of one running answer and `GenerationEvent` its numbered log
(docs/socket.md); only runs.py writes either.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from chat.ids import uuid7


class GenerationStatus(models.TextChoices):
    QUEUED = "queued"
    PREFILL = "prefill"
    DECODE = "decode"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


ACTIVE_STATUSES = (GenerationStatus.QUEUED, GenerationStatus.PREFILL, GenerationStatus.DECODE)


class Generation(models.Model):
    """The durable state of one answer while it is written, and its summary afterwards.

    `seq` is the number of the last logged event. `lease_owner` and `lease_until` name the process
    that writes it; when the lease runs out another process may take it and go on.
    `trace` is {"id", "spans", "cost"}: see spans.Trace and pricing.cost_of.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.CASCADE, related_name="generations"
    )
    message = models.OneToOneField(
        "chat.Message", on_delete=models.CASCADE, related_name="generation"
    )
    status = models.CharField(
        max_length=16, choices=GenerationStatus.choices, default=GenerationStatus.QUEUED
    )
    seq = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    stop_requested = models.BooleanField(default=False)
    model = models.CharField(max_length=200)
    model_revision = models.CharField(max_length=80, blank=True)
    params = models.JSONField(default=dict)
    trace = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["lease_until"],
                name="generation_active",
                condition=models.Q(status__in=ACTIVE_STATUSES),
            )
        ]

    def __str__(self) -> str:
        return f"generation {self.id}"


class GenerationTurn(models.Model):
    """What the engine was asked in one turn of an answer, and what it wrote, in token ids.

    `params` are inference.SamplingParams, with `images` that say which stand where in the prompt.
    `output_ids` are kept when the answer ends; until then they are in its events. With the model's
    revision they are all that it takes to draw the same again.
    """

    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="turns")
    index = models.PositiveSmallIntegerField()
    params = models.JSONField(default=dict)
    prompt_ids = ArrayField(models.IntegerField())
    output_ids = ArrayField(models.IntegerField(), default=list)

    class Meta:
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["generation", "index"], name="generation_turn_index")
        ]

    def __str__(self) -> str:
        return f"turn {self.index} of {self.generation_id}"


class GenerationEvent(models.Model):
    """One numbered event of a generation; pruned some time after the answer has ended."""

    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    payload = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["generation", "seq"], name="generation_event_seq")
        ]

    def __str__(self) -> str:
        return f"event {self.seq} of {self.generation_id}"
