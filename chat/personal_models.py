"""What people keep for their chats: custom instructions, assistants and saved prompts.

A chat copies what it is started with (Conversation.system_prompt and its neighbours), so that none of
these rows can change a chat that there is already.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.ids import uuid7


class HistoryStrategy(models.TextChoices):
    """What a model is shown of a conversation that is too long for it (chat/prompt_plan.py)."""

    WINDOW = "window", _("The newest messages")
    SUMMARY = "summary", _("A summary and the newest messages")
    SELECTIVE = "selective", _("The first message and the newest ones")


class Personalisation(models.Model):
    """A user's custom instructions, how long chats of theirs are shown to models, and which models they
    begin with and find first: names, of models that may be gone."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    is_on = models.BooleanField(default=True)
    about_you = models.TextField(blank=True)
    how_to_answer = models.TextField(blank=True)
    history_strategy = models.CharField(
        max_length=16, choices=HistoryStrategy.choices, default=HistoryStrategy.WINDOW
    )
    caches_answers = models.BooleanField(default=False)
    uses_memories = models.BooleanField(default=True)
    default_model = models.CharField(max_length=200, blank=True)
    pinned_models = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    version = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return f"personalisation of {self.owner_id}"


class Memory(models.Model):
    """What a user wants chats to know that begin later. `conversation` is the one it was said in."""

    MAX_CHARS = 500

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    text = models.CharField(max_length=MAX_CHARS)
    conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "memories"
        constraints = [models.UniqueConstraint(fields=["owner", "text"], name="memory_once")]

    def __str__(self) -> str:
        return f"memory {self.id}"


class Assistant(models.Model):
    """A preset that chats can be started with. Blank fields are left to whoever starts one.

    `parameters` are those of chat.asking.Sampling that it sets; `collections` are picked for a chat that
    starts with it, those of them that its reader may read; `tool_servers` are those whose tools it may
    call, where its reader may, too. A shared one is seen by every user and
    changed by its owner alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    system_prompt = models.TextField(blank=True)
    parameters = models.JSONField(default=dict)
    history_strategy = models.CharField(
        max_length=16, choices=HistoryStrategy.choices, blank=True, default=""
    )
    starters = models.JSONField(default=list)
    collections = ArrayField(models.UUIDField(), default=list, blank=True)
    tool_servers = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    is_shared = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "name"], name="assistant_by_name")]

    def __str__(self) -> str:
        return f"assistant {self.id}"


class SavedPrompt(models.Model):
    """A text for the composer, called by `/name`. `{{variables}}` in it are asked for."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=40)
    text = models.TextField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_prompt_name_once")
        ]

    def __str__(self) -> str:
        return f"saved prompt {self.id}"
