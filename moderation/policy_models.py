"""Policies as rows: which applies to whom, and every version that there was of it."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from moderation.policies import BadPolicy, parsed


def every_model() -> list[str]:
    return ["*"]


def _check_content(value: object) -> None:
    try:
        parsed(value)
    except BadPolicy as error:
        raise ValidationError(str(error)) from None


class ModerationPolicy(models.Model):
    """What is done about what texts hold (policies.py says how `content` reads), and for whom.

    Of all enabled policies that fit, the one with the lowest `order` decides. Those with `is_dry_run`
    decide nothing: what they would have done is kept beside it. Empty `tiers` (slugs), `groups` (names)
    and `key_prefixes` fit everybody; `model_names` are names or shell patterns. `version` grows with
    every change, each of which is kept (`PolicyVersion`).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80, unique=True)
    order = models.PositiveIntegerField(default=100)
    is_enabled = models.BooleanField("enabled", default=True)
    is_dry_run = models.BooleanField("dry run", default=False)
    tiers = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    groups = ArrayField(models.CharField(max_length=150), default=list, blank=True)
    model_names = ArrayField(models.CharField(max_length=200), default=every_model, blank=True)
    key_prefixes = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    content = models.JSONField(default=dict, blank=True, validators=[_check_content])
    version = models.PositiveIntegerField(default=1, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "moderation policy"
        verbose_name_plural = "moderation policies"
        ordering = ["order", "name"]

    def __str__(self) -> str:
        return self.name


class PolicyVersion(models.Model):
    """A policy as it was: the audit trail. `snapshot` has all of its fields. Rows are only added.

    `policy_id` is no foreign key: what a policy did outlives it.
    """

    id = models.BigAutoField(primary_key=True)
    policy_id = models.UUIDField(db_index=True)
    name = models.CharField(max_length=80)
    number = models.PositiveIntegerField()
    change = models.CharField(max_length=16)  # created, changed, deleted
    snapshot = models.JSONField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["policy_id", "number", "change"], name="policy_version_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.number}"
