"""What callers of /v1 leave with us: responses to go on from, and answers to give again."""

from django.conf import settings
from django.db import models

from chat.ids import uuid7


class StoredResponse(models.Model):
    """A response of /v1/responses: the items that were asked with it, and `body` as it was answered.

    `thread` is the first response of those that go on from each other, `previous` the one before this
    one; neither is a foreign key, for any of them may be deleted alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    thread = models.UUIDField(db_index=True)
    previous = models.UUIDField(null=True)
    input = models.JSONField()
    body = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "created_at"], name="stored_response_oldest")]

    def __str__(self) -> str:
        return f"response {self.id}"


class KeptAnswer(models.Model):
    """The answer to a request with an Idempotency-Key; `status` is null while it is being written.

    `request_hash` tells whether a request that comes again is the same.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    route = models.CharField(max_length=200)
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.BinaryField(default=bytes)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "route", "key"], name="kept_answer_once")
        ]
        indexes = [models.Index(fields=["owner", "created_at"], name="kept_answer_oldest")]

    def __str__(self) -> str:
        return f"kept answer {self.id}"
