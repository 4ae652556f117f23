"""Who cannot come in, since too much of what they wrote was stopped."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class Suspension(models.Model):
    """An account that strikes have closed: the mark that tells it from one that somebody else has.

    `points` are those that counted then. It holds while `ended_at` is empty. `appeal` is its owner's
    word, once; `notes` are a reviewer's, which the owner reads.
    """

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="strike_suspensions"
    )
    points = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)
    appeal = models.TextField(blank=True)
    appealed_at = models.DateTimeField(null=True, blank=True)
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    reviewed_at = models.DateTimeField(null=True, blank=True)
    notes = models.TextField(blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "suspension"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["owner"], condition=models.Q(ended_at=None), name="suspension_once"
            )
        ]

    def __str__(self) -> str:
        return f"suspension {self.pk}"
