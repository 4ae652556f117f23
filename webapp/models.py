"""People: users with their tier, API keys, and the one-time set-up link."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import Group, PermissionsMixin
from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.db.models.sql import Query
from django.utils import timezone

from webapp.people_models import Invitation, SecondStepRule, SignIn, SignupRule
from webapp.scim_models import ScimChange, ScimGroup, ScimPerson
from webapp.security_models import SecurityEvent

__all__ = [
    "ApiKey",
    "Feature",
    "GroupGrant",
    "Invitation",
    "ScimChange",
    "ScimGroup",
    "ScimPerson",
    "SecondStepRule",
    "SecurityEvent",
    "SetupToken",
    "SignIn",
    "SignupRule",
    "Tier",
    "User",
    "UserManager",
]

LAST_USED_PRECISION = timedelta(minutes=1)


def every_model() -> list[str]:
    return ["*"]


def every_feature() -> list[str]:
    return list(Feature.values)


class Feature(models.TextChoices):
    TOOLS = "tools", "tools in answers"
    FILES = "files", "files of one's own"
    API_KEYS = "api_keys", "API keys"


class Tier(models.Model):
    """What a user is entitled to. An empty limit is none.

    `model_names` are names or shell patterns. `requests_per_minute` counts the answers asked for, by
    browser and by program. `tokens_per_day`, `tokens_per_month` and `cost_per_month` (in
    VITRINE_CURRENCY) end with the message that passes them; days are UTC's. `concurrent_runs` is how
    many answers may be written at once, in chats and for programs together. Where more is asked of the
    engine than it can do, a user of twice the `weight` gets twice as much of it; programs wait in the
    class `api_priority`. `context_tokens` is how much of a model's context a chat may fill, answer
    included. Chats are deleted `chat_days` after their last message.
    """

    class ApiPriority(models.TextChoices):
        INTERACTIVE = "interactive", "with the people who chat"
        API = "api", "behind the people who chat"
        BACKGROUND = "background", "behind everybody"

    slug = models.SlugField(primary_key=True)
    name = models.CharField(max_length=80)
    model_names = ArrayField(models.CharField(max_length=200), default=every_model, blank=True)
    features = ArrayField(
        models.CharField(max_length=16, choices=Feature.choices), default=every_feature, blank=True
    )
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    concurrent_runs = models.PositiveSmallIntegerField(default=2)
    tokens_per_day = models.PositiveBigIntegerField(null=True, blank=True)
    tokens_per_month = models.PositiveBigIntegerField(null=True, blank=True)
    cost_per_month = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    upload_mib = models.PositiveIntegerField(null=True, blank=True)
    weight = models.FloatField(
        default=1.0, validators=[MinValueValidator(0.01), MaxValueValidator(1000)]
    )
    api_priority = models.CharField(
        max_length=16, choices=ApiPriority.choices, default=ApiPriority.API
    )
    context_tokens = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1024)]
    )
    chat_days = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(36_500)]
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(weight__gt=0), name="tier_weight_positive"),
            models.CheckConstraint(condition=models.Q(chat_days__gte=1), name="tier_keeps_a_day"),
        ]

    def __str__(self) -> str:
        return self.name


class GroupGrant(models.Model):
    """What a group's members may use beyond their tiers."""

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="grant")
    model_names = ArrayField(models.CharField(max_length=200), default=list, blank=True)

    def __str__(self) -> str:
        return f"grant of {self.group}"


class _Unnest(models.Func):
    function = "unnest"
    set_returning = True


def granted_models(user: str) -> ArraySubquery:
    """What the groups of a query's user grant; `user` is that user's column."""
    grants = GroupGrant.objects.filter(group__user=models.OuterRef(user))
    names = _Unnest("model_names", output_field=models.CharField())
    return ArraySubquery(grants.annotate(granted=names).values("granted"))


@cache
def _query_with_rights(model: type[User]) -> Query:
    """Made once, and never asked itself: Django takes a dozen times as long to make it as to copy it."""
    users: models.QuerySet[User] = models.QuerySet(model).select_related("tier")
    query: Query = users.annotate(granted_models=granted_models("pk")).query  # type: ignore[no-redef]
    return query


class UserManager(BaseUserManager["User"]):
    """Users come with their rights in one query, since async code could not fetch them later."""

    def get_queryset(self) -> models.QuerySet[User]:
        users = super().get_queryset()
        users.query = _query_with_rights(self.model).clone()
        # Django compiles a query in place: what is within is nobody else's either.
        within = users.query.annotations
        users.query.annotations = {name: within[name].copy() for name in within}
        return users

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=email, **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        rights = {"is_staff": True, "is_superuser": True, "tier_id": "admin"}
        return self.create_user(email, password, **(rights | fields))

    def has_administrator(self) -> bool:
        return self.filter(is_superuser=True, is_active=True).exists()


class User(AbstractBaseUser, PermissionsMixin):
    """A person, known by e-mail address: in small letters, as sign-in looks for it. Suspended when
    `is_active` is false."""

    email = models.EmailField("e-mail", unique=True, max_length=254)
    name = models.CharField(max_length=120, blank=True)
    language = models.CharField(max_length=8, blank=True)  # empty: as the browser asks
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, default="free", related_name="users")
    cost_per_month = models.DecimalField(
        "cost per month, in place of the tier's",
        max_digits=12,
        decimal_places=2,
        null=True,
        blank=True,
    )
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

    def clean(self) -> None:
        super().clean()
        self.email = self.email.strip().lower()

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.email = self.email.strip().lower()
        super().save(*args, **kwargs)

    @cached_property
    def granted_models(self) -> list[str]:
        """Of the groups; names or patterns. The manager sets it: this is for a user just made."""
        grants = GroupGrant.objects.filter(group__user=self.pk)
        lists = grants.values_list("model_names", flat=True)
        return [name for names in lists for name in names]

    @property
    def keeps_own_address(self) -> bool:
        """Not where a directory keeps it. One query, where there is a directory."""
        from webapp.directory_links import is_of_directory  # which imports this module

        return not is_of_directory(self)

    @property
    def keeps_own_name(self) -> bool:
        """Nor where one writes it here. Two queries at most."""
        is_written = bool(settings.SCIM_TOKEN) and ScimPerson.objects.filter(user=self).exists()
        return self.keeps_own_address and not is_written

    def get_full_name(self) -> str:
        return self.name

    def get_short_name(self) -> str:
        return self.name.split(" ")[0] if self.name else self.email.split("@")[0]


class ApiKey(models.Model):
    """A secret for programs. Only its hash is kept; `prefix` finds it and names it for people.

    `scopes` are the doors that it opens (webapp/scopes.py). Its `model_names` and limits narrow what
    the user's tier allows, and never widen it.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=120, blank=True)
    prefix = models.CharField(max_length=16, db_index=True, editable=False)
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=16))
    model_names = ArrayField(models.CharField(max_length=200), default=every_model)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_day = models.PositiveBigIntegerField(null=True, blank=True)
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
