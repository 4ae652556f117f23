"""Answers that are kept, so that the same question need not be answered twice."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from pgvector.django import HalfVectorField

from chat.ids import uuid7


class CachedAnswer(models.Model):
    """An answer to the first question of a chat. With a `collection` everybody who may read that gets
    it, without one only who asked.

    `context` is a hash of all that it was made of but the question: model, prompt, parameters, and the
    versions of `collections`. `key` is one of the question, too; `vector` is its meaning. The database
    drops it when one of the collections changes (migration `cached_answers`).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    collection = models.ForeignKey(
        "retrieval.Collection", on_delete=models.CASCADE, null=True, related_name="+"
    )
    collections = ArrayField(models.UUIDField(), default=list)
    key = models.CharField(max_length=64)
    context = models.CharField(max_length=64)
    question = models.TextField()
    text = models.TextField()
    found = models.JSONField(null=True)
    model = models.CharField(max_length=200)
    revision = models.CharField(max_length=80, blank=True)
    vector_model = models.ForeignKey(
        "retrieval.EmbeddingModel", on_delete=models.CASCADE, null=True, related_name="+"
    )
    vector = HalfVectorField(null=True)
    num_hits = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["key"],
                condition=models.Q(collection__isnull=False),
                name="cached_once_for_all",
            ),
            models.UniqueConstraint(
                fields=["owner", "key"],
                condition=models.Q(collection=None),
                name="cached_once_for_one",
            ),
        ]
        indexes = [
            models.Index(fields=["context"], name="cached_context"),
            GinIndex(fields=["collections"], name="cached_of_collection"),
        ]

    def __str__(self) -> str:
        return f"cached answer {self.id}"
