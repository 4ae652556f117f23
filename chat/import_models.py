"""Chats that come from elsewhere."""

from django.conf import settings
from django.db import models

from chat.ids import uuid7


class ImportStatus(models.TextChoices):
    """`checking` reads the file without importing; `checked` waits for the owner's word."""

    CHECKING = "checking"
    CHECKED = "checked"
    IMPORTING = "importing"
    DONE = "done"
    FAILED = "failed"


WORKING_IMPORTS = (ImportStatus.CHECKING, ImportStatus.IMPORTING)


class ChatImport(models.Model):
    """An uploaded file of chats, and how far its import is; the file lies in DATA_DIR/imports.

    `report` is what transfer.importing.Report says. The lease names the worker that reads the file;
    when it runs out another one begins anew, and finds what is imported already. `attempts` counts the
    workers that have begun this reading.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chat_imports"
    )
    file_name = models.CharField(max_length=200)
    size_bytes = models.BigIntegerField()
    status = models.CharField(
        max_length=16, choices=ImportStatus.choices, default=ImportStatus.CHECKING
    )
    report = models.JSONField(default=dict)
    error = models.CharField(max_length=300, blank=True)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-id"], name="import_recent"),
            models.Index(
                fields=["lease_until"],
                name="import_working",
                condition=models.Q(status__in=WORKING_IMPORTS),
            ),
        ]

    def __str__(self) -> str:
        return f"import {self.id}"


class ChatOrigin(models.Model):
    """Where an imported conversation came from: the same one is not imported twice."""

    conversation = models.OneToOneField(
        "chat.Conversation", on_delete=models.CASCADE, related_name="imported_from"
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    chat_import = models.ForeignKey(
        ChatImport, on_delete=models.SET_NULL, null=True, related_name="origins"
    )
    origin = models.CharField(max_length=200)
    content_hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "origin", "content_hash"], name="chat_imported_once"
            )
        ]

    def __str__(self) -> str:
        return f"origin of {self.conversation_id}"
