"""Files that callers of /v1 keep with us."""

from django.conf import settings
from django.db import models

from chat.ids import uuid7


class ApiFile(models.Model):
    """A file of /v1/files; what is in it lies in DATA_DIR/files (file_store.py).

    `name` is what its owner calls it and never a path of ours. `expires_at` is null where it is kept
    until somebody deletes it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    purpose = models.CharField(max_length=32)
    name = models.CharField(max_length=255)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, db_index=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "-id"], name="api_file_recent")]

    def __str__(self) -> str:
        return f"file {self.id}"
