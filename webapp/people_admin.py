"""Invitations, addresses, connected accounts and second steps in the admin console."""

from datetime import timedelta
from typing import Any

import allauth.mfa.admin  # registers what is taken back here
from allauth.account.admin import EmailAddressAdmin as StockEmailAddressAdmin
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.admin import SocialAccountAdmin as StockSocialAccountAdmin
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.validators import validate_email
from django.db.models import QuerySet
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget

from webapp.console_rights import BelowOneself
from webapp.console_words import counted
from webapp.invitations import LIFETIME, groups_to_give, issue, send_invitation
from webapp.languages import language_of
from webapp.models import Invitation, User
from webapp.security_events import Kind
from webapp.signup import current_policy

del allauth
admin.site.unregister([Authenticator, EmailAddress, SocialAccount])
# Providers are named by settings. Whoever could add one here could vouch for anybody.
admin.site.unregister([SocialApp, SocialToken])

MAX_INVITED = 1000  # at a time


class InvitationForm(forms.ModelForm):
    """Many at once, or none of them: what is wrong is told by line, and all that was pasted stays."""

    email = forms.CharField(
        label="E-mail addresses",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6, "dir": "ltr", "spellcheck": "false"}),
        help_text="One a line; each gets an invitation of its own. Empty: one that anybody may use.",
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=365,
        initial=LIFETIME.days,
        help_text="How long it is valid.",
        widget=UnfoldAdminIntegerFieldWidget,
    )

    class Meta:
        model = Invitation
        fields = ("email", "tier", "group")
        help_texts = {"group": "Of those that give no right in this console."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.emails: list[str] = []
        if "group" in self.fields:
            group: Any = self.fields["group"]
            group.queryset = groups_to_give()

    def clean_email(self) -> str:
        """The first of the addresses; `emails` are all, each once."""
        found: dict[str, int] = {}
        for number, line in enumerate(self.cleaned_data["email"].splitlines(), start=1):
            for email in line.replace(";", ",").split(","):
                if email.strip():
                    found.setdefault(email.strip().lower(), number)
        if len(found) > MAX_INVITED:
            raise forms.ValidationError(f"At most {MAX_INVITED} addresses at a time.")
        here = _with_account(list(found))
        problems = [
            f"Line {number}: {problem}"
            for email, number in found.items()
            if (problem := _problem(email, has_account=email in here))
        ]
        if problems:
            raise forms.ValidationError(problems)
        self.emails = list(found)
        return self.emails[0] if found else ""

    def clean(self) -> dict[str, Any]:
        if not current_policy().takes_invitations:
            raise forms.ValidationError("Sign-up is closed: an invitation would open nothing.")
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        return cleaned


def _with_account(emails: list[str]) -> set[str]:
    people = User._base_manager.annotate(lower=Lower("email")).filter(lower__in=emails)
    return set(people.values_list("lower", flat=True))


def _problem(email: str, *, has_account: bool) -> str:
    if has_account:
        return f"{email} has an account already."
    try:
        validate_email(email)
    except forms.ValidationError:
        return f"{email[:100]} is no e-mail address."
    return "" if len(email) <= 254 else f"{email[:100]}… is too long."


@admin.register(Invitation)
class InvitationAdmin(ModelAdmin):  # type: ignore[misc]
    """Made and withdrawn, never changed. Where the site can write letters, whom one is for gets it by a
    letter; the links are shown when they are made, and once."""

    nothing_here = (
        "Nobody is invited. An invitation lets somebody in where sign-up is not open to all."
    )
    list_display = ("__str__", "tier", "group", "created_at", "expires_at", "used_at", "used_by")
    list_select_related = ("tier", "group", "used_by")
    search_fields = ("email", "used_by__email")
    form = InvitationForm
    fields = ("email", "tier", "group", "days")

    class Media:
        css = {"all": ["css/admin.css"]}

    def get_fields(self, request: HttpRequest, obj: Invitation | None = None) -> tuple[str, ...]:
        made = ("email", "tier", "group", "expires_at", "used_at", "used_by")
        if obj is not None:
            return made
        is_superuser = getattr(request.user, "is_superuser", False)  # who alone gives groups
        return self.fields if is_superuser else ("email", "tier", "days")

    def has_change_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        obj.expires_at = timezone.now() + timedelta(days=form.cleaned_data["days"])
        first, *others = form.emails or [""]
        obj.email = first
        rows = [obj, *(_like(obj, email) for email in others)]
        request.invitations_made = [(row, request.build_absolute_uri(issue(row))) for row in rows]  # type: ignore[attr-defined]
        for row, link in request.invitations_made:  # type: ignore[attr-defined]
            if row is not obj:  # which Django notes
                self.log_addition(request, row, [{"added": {}}])
            if row.email and settings.SMTP_HOST:
                send_invitation(row, link, language=language_of(request))

    def response_add(
        self, request: HttpRequest, obj: Invitation, post_url_continue: str | None = None
    ) -> HttpResponse:
        made: Any = request.invitations_made  # type: ignore[attr-defined]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": counted(len(made), "invitation"),
            "made": made,
            "are_sent": bool(settings.SMTP_HOST),
            "back": reverse("admin:webapp_invitation_changelist"),
        }
        headers = {"Cache-Control": "no-store"}
        return TemplateResponse(request, "admin/invitations_made.html", context, headers=headers)


def _like(row: Invitation, email: str) -> Invitation:
    """Another one, for this address."""
    return Invitation(email=email, tier=row.tier, group=row.group, expires_at=row.expires_at)


@admin.register(Authenticator)
class AuthenticatorAdmin(BelowOneself, ModelAdmin):  # type: ignore[misc]
    """For somebody who has lost the phone: an administrator can take a second step away, and neither
    see nor make one."""

    nothing_here = "Nobody has a second step."
    trail = Kind.SECOND_STEP
    list_display = ("user", "type", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    fields = readonly_fields = ("user", "type", "created_at", "last_used_at")

    class Media:
        css = {"all": ["css/admin.css"]}

    def account_of(self, obj: Authenticator) -> Any:
        return obj.user

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(SocialAccount)
class SocialAccountAdmin(BelowOneself, StockSocialAccountAdmin, ModelAdmin):  # type: ignore[misc]
    """Whoever proves to be it there signs in by it."""

    nothing_here = "Nobody signs in with an account of another server."
    trail = Kind.CONNECTION

    def account_of(self, obj: SocialAccount) -> Any:
        return obj.user


@admin.register(EmailAddress)
class EmailAddressAdmin(BelowOneself, StockEmailAddressAdmin, ModelAdmin):  # type: ignore[misc]
    """A new password is sent to it."""

    nothing_here = "No address is on record: accounts that sign up bring theirs along."
    trail = Kind.ADDRESS
    list_select_related = ("user",)

    def account_of(self, obj: EmailAddress) -> Any:
        return obj.user

    @admin.action(description="Confirm these addresses", permissions=["change"])
    def make_verified(self, request: HttpRequest, queryset: QuerySet[EmailAddress]) -> None:
        """Each on record, as a change on its own page is."""
        for row in queryset.filter(verified=False).select_related("user"):
            if not self.has_change_permission(request, row):
                self.message_user(request, f"{row} is an administrator's.", messages.ERROR)
            elif not row.set_verified():
                words = f"Another account has confirmed {row}."
                self.message_user(request, words, messages.ERROR)
            else:
                self.log_change(request, row, f"Confirmed {row}, of {row.user.email}.")
                self._note(row, "confirmed in the console")
                self.message_user(request, f"Confirmed: {row}.", messages.SUCCESS)
