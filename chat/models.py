"""Conversations as trees of messages; the app's other models beside them by name.

A message is a row whose parent is the message before it; children are derived, never stored (which
of them is shown: branches.py). A finished message is immutable.
Row-level security lets a connection see a row only inside the scope of its owner (migration 0002).
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from chat.announcement_models import Announcement as Announcement
from chat.api_models import KeptAnswer as KeptAnswer
from chat.api_models import StoredResponse as StoredResponse
from chat.batch_models import UNFINISHED_BATCHES as UNFINISHED_BATCHES
from chat.batch_models import Batch as Batch
from chat.batch_models import BatchResult as BatchResult
from chat.batch_models import BatchStatus as BatchStatus
from chat.cache_models import CachedAnswer as CachedAnswer
from chat.file_models import ApiFile as ApiFile
from chat.ids import uuid7
from chat.import_models import WORKING_IMPORTS as WORKING_IMPORTS
from chat.import_models import ChatImport as ChatImport
from chat.import_models import ChatOrigin as ChatOrigin
from chat.import_models import ImportStatus as ImportStatus
from chat.personal_models import Assistant as Assistant
from chat.personal_models import HistoryStrategy as HistoryStrategy
from chat.personal_models import Memory as Memory
from chat.personal_models import Personalisation as Personalisation
from chat.personal_models import SavedPrompt as SavedPrompt
from chat.price_models import ModelPrice as ModelPrice
from chat.recall_models import MessageVector as MessageVector
from chat.run_models import ACTIVE_STATUSES as ACTIVE_STATUSES
from chat.run_models import Generation as Generation
from chat.run_models import GenerationEvent as GenerationEvent
from chat.run_models import GenerationStatus as GenerationStatus
from chat.run_models import GenerationTurn as GenerationTurn
from chat.schedule_models import Repeats as Repeats
from chat.schedule_models import Schedule as Schedule
from chat.search_models import SearchEntry as SearchEntry
from chat.share_models import Share as Share
from chat.share_models import ShareKind as ShareKind
from chat.tool_models import ServerTool as ServerTool
from chat.usage_models import Reservation as Reservation
from chat.usage_models import Usage as Usage

_DELETED = models.Q(deleted_at__isnull=False)
_ARCHIVED = models.Q(deleted_at=None, archived_at__isnull=False)
_PINNED = models.Q(deleted_at=None, archived_at=None, pinned_at__isnull=False)
_LOOSE = models.Q(deleted_at=None, archived_at=None, pinned_at=None, folder=None)


class Folder(models.Model):
    """Holds conversations of its owner; one that is deleted leaves them without a folder."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="folders"
    )
    name = models.CharField(max_length=80)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("owner", Lower("name"), name="folder_name_once_per_owner")
        ]

    def __str__(self) -> str:
        return f"folder {self.id}"


class Conversation(models.Model):
    """One chat. `version` grows with every change by a person: two tabs never overwrite each other.

    One that is deleted waits a while for those who want it back (`deleted_at`); no door shows it.
    `unread_at`: an answer ended in it that no page followed, or its owner said so; that is no change.
    `system_prompt`, `instructions` (the user's own), `memory` (what was known of the user),
    `parameters` (of chat.asking.Sampling) and `history_strategy` are copies of what it was started
    with, as are `tool_servers`, whose tools its answers may call, and `remembers`, whether they may
    add to what is known of the user; `assistant` says what that was, as {"id", "name", "version"}.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    title_by_hand = models.BooleanField(default=False)
    model = models.CharField(max_length=200, blank=True)
    system_prompt = models.TextField(blank=True)
    instructions = models.TextField(blank=True)
    memory = models.TextField(blank=True)
    remembers = models.BooleanField(default=False)
    parameters = models.JSONField(default=dict)
    assistant = models.JSONField(null=True, blank=True)
    history_strategy = models.CharField(
        max_length=16, choices=HistoryStrategy.choices, default=HistoryStrategy.WINDOW
    )
    tool_servers = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    folder = models.ForeignKey(
        Folder, on_delete=models.SET_NULL, null=True, blank=True, related_name="conversations"
    )
    tags = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    unread_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        # Each list of the sidebar is one range of one index, however long the others are.
        indexes = [
            models.Index(fields=["owner", "-updated_at", "-id"], name="conversation_recent"),
            models.Index(
                fields=["owner", "-updated_at", "-id"], name="conversation_loose", condition=_LOOSE
            ),
            models.Index(fields=["folder", "-updated_at", "-id"], name="conversation_in_folder"),
            models.Index(fields=["owner"], name="conversation_pinned", condition=_PINNED),
            models.Index(
                fields=["owner", "-updated_at", "-id"],
                name="conversation_archived",
                condition=_ARCHIVED,
            ),
            models.Index(
                fields=["owner"], name="conversation_tagged", condition=~models.Q(tags=[])
            ),
            models.Index(fields=["deleted_at"], name="conversation_deleted", condition=_DELETED),
        ]

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


class LiveMessages(models.Manager["Message"]):
    """What nobody has deleted. Deleted rows wait for their undo, and then for the purge."""

    def get_queryset(self) -> models.QuerySet["Message"]:
        return super().get_queryset().filter(deleted_at=None)


class Message(models.Model):
    """One turn. `parts` is what was said in order; `text` is its text parts joined, for search.

    A part is {"type": "text" | "reasoning", "text"} or {"type": "tool_call", "id", "name",
    "arguments"} or {"type": "tool_result", "id", "content", "is_error"}.
    `client_id` makes a send idempotent: one message per (conversation, client_id).
    A pinned message is never left out of a prompt while there is room for it. `left_out` of an answer
    is what its model was not shown: {"before", "num_messages", "summary", "stopped"} as in
    events.LeftOut.
    `sources` of a question are the collections and documents that it is to be answered from
    (sources.named), `found` of an answer what was found in them: {"query", "excerpts", "is_whole"} as in
    events.Found. `from_cache`: it was given before, {"asked_at", "question", "similarity"}.
    `feedback` is what its reader thinks of an answer (feedback.py).
    `chosen` is the conversation's version when this branch was last chosen: of siblings the highest
    is shown. `edited`: a person wrote this answer over another one; `brought`: it was not said here, but
    came with an import, from a share link or a page's temporary chat; `resumed`: the process that wrote
    it died, and another went on. `deletion` names what was deleted together.
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
    is_pinned = models.BooleanField(default=False)
    left_out = models.JSONField(null=True, blank=True)
    sources = models.JSONField(null=True, blank=True)
    found = models.JSONField(null=True, blank=True)
    from_cache = models.JSONField(null=True, blank=True)
    feedback = models.JSONField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True)
    finish_reason = models.CharField(max_length=32, blank=True)
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(null=True, blank=True)
    timings = models.JSONField(null=True, blank=True)
    chosen = models.PositiveIntegerField(default=0)
    edited = models.BooleanField(default=False)
    brought = models.BooleanField(default=False)
    resumed = models.BooleanField(default=False)
    deletion = models.CharField(max_length=64, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = LiveMessages()
    with_deleted = models.Manager["Message"]()

    class Meta:
        indexes = [
            models.Index(fields=["conversation", "created_at"], name="message_order"),
            models.Index(
                fields=["conversation"],
                name="message_found",
                condition=models.Q(found__isnull=False),
            ),
            models.Index(
                fields=["conversation"],
                name="message_sources",
                condition=models.Q(sources__isnull=False),
            ),
            models.Index(
                fields=["deleted_at"],
                name="message_deleted",
                condition=models.Q(deleted_at__isnull=False),
            ),
            models.Index(
                fields=["-created_at"],
                name="message_rated",
                condition=models.Q(feedback__isnull=False),
            ),
        ]
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


class RatedAnswer(Message):
    """An answer that a reader rated, for those who run the site."""

    class Meta:
        proxy = True
        verbose_name = "rated answer"

    def __str__(self) -> str:
        return f"rating of {self.pk}"


class Summary(models.Model):
    """What a model wrote about the messages in front of `until`, on its branch."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="summaries"
    )
    until = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    text = models.TextField()
    model = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["until"], name="summary_once")]

    def __str__(self) -> str:
        return f"summary {self.id}"
