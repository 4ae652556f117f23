"""What was measured of retrieval, and with which settings."""

from django.db import models
from django.utils import timezone

from retrieval.ids import uuid7


class Evaluation(models.Model):
    """How well one configuration found the passages that answer a set's questions (evaluation.py).

    Those of one run have the same `run`. A record of the operators', seen in the system's scope alone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.UUIDField()
    set_name = models.CharField("set", max_length=255)
    set_sha256 = models.CharField("SHA-256 of the set", max_length=64)
    embedding_model = models.CharField(max_length=200)
    way = models.CharField(max_length=16)
    max_tokens = models.PositiveIntegerField("tokens of a chunk")
    overlap_tokens = models.PositiveIntegerField("of them shared")
    num_questions = models.PositiveIntegerField("questions")
    scores = models.JSONField()
    took_s = models.FloatField("seconds")
    created_at = models.DateTimeField("when", default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["-created_at"], name="evaluation_recent")]

    def __str__(self) -> str:
        return f"{self.way} on {self.set_name}"
