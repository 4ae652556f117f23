"""How people come in, and where they are: the sign-up policy, invitations and sign-ins."""

from typing import cast

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from webapp.signup_policy import Mode, SignupPolicy


class SignupRule(models.Model):
    """Who may make an account, as set in the console: in place of VITRINE_SIGNUP, while there is a row.

    `domains` are those of the mode "domain", else none.
    """

    class Modes(models.TextChoices):
        OPEN = "open", "everybody"
        DOMAIN = "domain", "whose address is of these domains"
        INVITATION = "invitation", "who has an invitation"
        CLOSED = "closed", "nobody"

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    mode = models.CharField("who may sign up", max_length=16, choices=Modes.choices)
    domains = ArrayField(models.CharField(max_length=253), default=list, blank=True)

    class Meta:
        verbose_name = "sign-up policy"
        verbose_name_plural = "sign-up policy"
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="signup_rule_only_one")
        ]

    def __str__(self) -> str:
        return ", ".join([self.get_mode_display(), *self.domains])

    @property
    def policy(self) -> SignupPolicy:
        return SignupPolicy(cast(Mode, self.mode), tuple(self.domains))


class SecondStepRule(models.Model):
    """Of whom a second step is asked, as set in the console: in place of VITRINE_SECOND_STEP, while
    there is a row. Only of who has a password that is kept here: others are asked where theirs is."""

    class Whom(models.TextChoices):
        NOBODY = "nobody", "nobody"
        STAFF = "staff", "who may use this console"
        EVERYBODY = "everybody", "everybody"

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    whom = models.CharField("who has to have one", max_length=16, choices=Whom.choices)

    class Meta:
        verbose_name = "second-step policy"
        verbose_name_plural = "second-step policy"
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="second_step_rule_only_one")
        ]

    def __str__(self) -> str:
        return self.get_whom_display()


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def usable(self) -> "InvitationQuerySet":
        return self.filter(used_at=None, expires_at__gt=timezone.now())


class Invitation(models.Model):
    """A link that makes one account. Only its hash is kept; it can be shown once.

    With an `email`, only that address may use it. It gives a tier, and a group of those that hold no
    permission, and never any right.
    """

    email = models.EmailField("e-mail", max_length=254, blank=True)
    tier = models.ForeignKey(
        "webapp.Tier", on_delete=models.PROTECT, default="free", related_name="+"
    )
    group = models.ForeignKey(
        "auth.Group", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )

    objects = InvitationQuerySet.as_manager()

    def __str__(self) -> str:
        return f"invitation of {self.email or 'anybody'}"


class SignIn(models.Model):
    """A browser in which somebody is signed in, or a program that has tokens (webapp/tokens.py); seen
    by that person alone (row-level security).

    It is alive as long as its session is. `last_seen_at` is right to a minute. `token_family` is None
    for a browser; `refresh_number` is that of the one refresh token that is valid, and `refreshed_at`
    when the one before it was used.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ins"
    )
    session_key = models.CharField(max_length=40, unique=True, editable=False)
    address = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True)
    token_family = models.UUIDField(null=True, unique=True, editable=False)
    refresh_number = models.PositiveIntegerField(default=0, editable=False)
    refreshed_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"sign-in {self.pk}"
