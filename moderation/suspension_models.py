"""Who cannot come in, since too much of what they wrote was stopped."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from moderation.appealed import Appealed


class Suspension(Appealed):
    """An account that strikes have closed: the mark that tells it from one that somebody else has.

    `points` are those that counted then. It holds while `ended_at` is empty.
    """

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="strike_suspensions"
    )
    points = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)
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
