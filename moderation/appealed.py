"""What people say against what was done to them, and what somebody answers."""

from django.conf import settings
from django.db import models


class Appealed(models.Model):
    """`appeal` is its owner's word, once; `notes` are a reviewer's, which the owner reads."""

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

    class Meta:
        abstract = True
