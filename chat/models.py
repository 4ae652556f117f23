"""Conversations as trees of messages, and the runs that write answers.

A message is a row whose parent is the message before it; children are derived, never stored.
A finished message is immutable. `Generation` is the durable state of one running answer and
`GenerationEvent` its numbered log (docs/socket.md); only runs.py writes either.
Row-level security lets a connection see a row only inside the scope of its owner (migration 0002).
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from chat.ids import uuid7


class Conversation(models.Model):
    """One chat. `version` grows with every change by a person: two tabs never overwrite each other."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    title_by_hand = models.BooleanField(default=False)
    model = models.CharField(max_length=200, blank=True)
    system_prompt = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "-updated_at"], name="conversation_recent")]

    def __str__(self) -> str:
        return f"conversation {self.id}"


class Role(models.TextChoices):
    USER = "user"
    ASSISTANT = "assistant"


class MessageStatus(models.TextChoices):
    """Where a message stands; everything but `running` is final."""

    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    REFUSED = "refused"
    FAILED = "failed"


class Message(models.Model):
    """One turn. `parts` is what was said in order; `text` is its text parts joined, for search.

    A part is {"type": "text" | "reasoning", "text"} or {"type": "tool_call", "id", "name",
    "arguments"} or {"type": "tool_result", "id", "content", "is_error"}.
    `client_id` makes a send idempotent: one message per (conversation, client_id).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    status = models.CharField(
        max_length=16, choices=MessageStatus.choices, default=MessageStatus.COMPLETE
    )
    text = models.TextField(blank=True)
    parts = models.JSONField(default=list)
    client_id = models.CharField(max_length=64, null=True, blank=True)
    model = models.CharField(max_length=200, blank=True)
    finish_reason = models.CharField(max_length=32, blank=True)
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(null=True, blank=True)
    timings = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["conversation", "created_at"], name="message_order")]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "client_id"], name="message_sent_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="message_role_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(parent=models.F("id")), name="message_not_its_own_parent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} message {self.id}"


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
    `prompt_ids` are those of the current engine turn; its output ids are in the events.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="generations"
    )
    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="generation")
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
    prompt_ids = ArrayField(models.IntegerField(), default=list)
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
