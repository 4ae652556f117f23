"""What messages mean, so that a search finds them by other words than theirs."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField


class MessageVector(models.Model):
    """The vector of a piece of a message by one model, of length 1: the characters `start` to `end` of
    its text. A row without a vector says that the message waits for its own.

    Triggers write what waits, in the transaction that writes the text, and drop what there was
    (migration `message_vectors`); the database deletes with the message itself. So a waiting row stands
    for one text: whoever finds it gone has read a text that is no more. `lease_until` and `attempts` are
    of the process that makes its vectors.
    """

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    # Not constrained: the message's own conversation, and one row less that a write has to lock.
    conversation = models.ForeignKey(
        "chat.Conversation",
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    message = models.ForeignKey(
        "chat.Message", on_delete=models.DO_NOTHING, related_name="+", db_constraint=False
    )
    created_at = models.DateTimeField()
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField(default=0)
    model = models.ForeignKey(
        "retrieval.EmbeddingModel",
        on_delete=models.PROTECT,  # its messages have to wait for other vectors first (queue_anew)
        null=True,
        related_name="+",
        db_index=False,
    )
    vector = HalfVectorField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(
                fields=["model", "owner"],
                name="messagevector_of_owner",
                condition=Q(model__isnull=False),
            ),
            models.Index(
                fields=["attempts", "-id"],
                name="messagevector_waiting",
                condition=Q(model=None),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(model=None, vector=None) | Q(model__isnull=False, vector__isnull=False),
                name="messagevector_whole",
            )
        ]

    def __str__(self) -> str:
        return f"vector of message {self.message_id}"
