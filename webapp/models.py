"""People: users with their tier, API keys, and the one-time set-up link."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

LAST_USED_PRECISION = timedelta(minutes=1)


class Tier(models.Model):
    """What a user is entitled to.

    `concurrent_runs` is how many answers may be written at once. Where more is asked of the engine
    than it can do, a user of twice the `weight` gets twice as much of it.
    """

    slug = models.SlugField(primary_key=True)
    name = models.CharField(max_length=80)
    concurrent_runs = models.PositiveSmallIntegerField(default=2)
    weight = models.FloatField(
        default=1.0, validators=[MinValueValidator(0.01), MaxValueValidator(1000)]
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(weight__gt=0), name="tier_weight_positive")
        ]

    def __str__(self) -> str:
        return self.name


class UserManager(BaseUserManager["User"]):
    """Users come with their tier in one query, since async code could not fetch it later."""

    def get_queryset(self) -> models.QuerySet[User]:
        return super().get_queryset().select_related("tier")

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        rights = {"is_staff": True, "is_superuser": True, "tier_id": "admin"}
        return self.create_user(email, password, **(rights | fields))

    def has_administrator(self) -> bool:
        return self.filter(is_superuser=True, is_active=True).exists()


class User(AbstractBaseUser, PermissionsMixin):
    """A person, known by e-mail address. Suspended when `is_active` is false."""

    email = models.EmailField("e-mail", unique=True, max_length=254)
    name = models.CharField(max_length=120, blank=True)
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, default="free", related_name="users")
    is_active = models.BooleanField("active", default=True)
    is_staff = models.BooleanField("may enter the admin console", default=False)
    date_joined = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_any_case")]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        return self.name

    def get_short_name(self) -> str:
        return self.name.split(" ")[0] if self.name else self.email.split("@")[0]


class ApiKey(models.Model):
    """A secret for programs. Only its hash is kept; `prefix` finds it and names it for people.

    `scopes` are the doors that it opens: "v1" (OpenAI-compatible) and "api" (Vitrine's own).
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=120, blank=True)
    prefix = models.CharField(max_length=16, db_index=True, editable=False)
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=16))
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}".strip()

    def is_usable(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


class SetupToken(models.Model):
    """The link that makes the first administrator; one row at most, and gone once used."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    secret_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="setup_token_only_one")
        ]

    def __str__(self) -> str:
        return "set-up link"
