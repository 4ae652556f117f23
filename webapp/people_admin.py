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
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin

from webapp.console_rights import BelowOneself
from webapp.invitations import LIFETIME, issue
from webapp.models import Invitation

del allauth
admin.site.unregister([Authenticator, EmailAddress, SocialAccount])
# Providers are named by settings. Whoever could add one here could vouch for anybody.
admin.site.unregister([SocialApp, SocialToken])


class InvitationForm(forms.ModelForm):
    days = forms.IntegerField(
        min_value=1, max_value=365, initial=LIFETIME.days, help_text="How long it is valid."
    )

    class Meta:
        model = Invitation
        fields = ("email", "tier")


@admin.register(Invitation)
class InvitationAdmin(ModelAdmin):  # type: ignore[misc]
    """Made and withdrawn, never changed: the link is shown when it is made, and once."""

    list_display = ("__str__", "tier", "created_at", "expires_at", "used_at", "used_by")
    list_select_related = ("tier", "used_by")
    search_fields = ("email", "used_by__email")
    form = InvitationForm
    fields = ("email", "tier", "days")

    class Media:
        css = {"all": ["css/admin.css"]}

    def get_fields(self, request: HttpRequest, obj: Invitation | None = None) -> tuple[str, ...]:
        return self.fields if obj is None else ("email", "tier", "expires_at", "used_at", "used_by")

    def has_change_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        obj.expires_at = timezone.now() + timedelta(days=form.cleaned_data["days"])
        link = issue(obj)
        messages.warning(request, f"The link is shown this once: {link}")


@admin.register(Authenticator)
class AuthenticatorAdmin(BelowOneself, ModelAdmin):  # type: ignore[misc]
    """For somebody who has lost the phone: an administrator can take a second step away, and neither
    see nor make one."""

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

    def account_of(self, obj: SocialAccount) -> Any:
        return obj.user


@admin.register(EmailAddress)
class EmailAddressAdmin(BelowOneself, StockEmailAddressAdmin, ModelAdmin):  # type: ignore[misc]
    """A new password is sent to it."""

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
                self.message_user(request, f"Confirmed: {row}.", messages.SUCCESS)
