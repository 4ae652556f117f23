"""The admin console: people, what tiers and groups allow, keys, usage, sessions, and who did what.

Nobody sees here what people write.
"""

from typing import Any

from allauth.account.decorators import secure_admin_login
from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.admin import ModelAdmin, StackedInline
from unfold.forms import AdminPasswordChangeForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from chat.models import Usage
from moderation.policy_store import rename_in_policies
from webapp import (  # noqa: F401
    announcement_admin,
    console_menu,
    evaluation_admin,
    feedback_admin,
    people_admin,
    policy_admin,
    price_admin,
    review_admin,
    scim_admin,
    second_step_admin,
    security_admin,
    share_admin,
    sign_in_admin,
    signup_admin,
    suspension_admin,
    tool_admin,
    vectors_admin,
)
from webapp.addresses import readdress
from webapp.anomalies import signals_of
from webapp.api_keys import key_end
from webapp.console_columns import figures
from webapp.console_filters import distinct, one_of
from webapp.console_rights import BelowOneself, GivesPermissions
from webapp.deletion_admin import DeletesAccounts
from webapp.models import ApiKey, Feature, GroupGrant, Tier, User
from webapp.read_only_admin import EverybodysAdmin, ReadOnlyAdmin
from webapp.security_admin import LeavesTrail
from webapp.security_events import Kind, note_event
from webapp.sign_ins import end_all_sign_ins
from webapp.suspensions import forget_marks
from webapp.user_actions import UserActions
from webapp.user_forms import UserChangeForm, UserCreationForm

_RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")
"""Of an account, what a superuser alone gives and takes; groups may hold permissions."""


def _change_password(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    return redirect("account_change_password")


# One door for passwords, with its rate limit; the admin's own forms would be others.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
for _name, _view in (
    ("password_change", _change_password),
    ("password_change_done", _change_password),
    ("search", console_menu.search),  # unfold's knows tables by other names than the menu
):
    setattr(admin.site, _name, _view)
admin.site.index_title = "Overview"
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(
    BelowOneself,
    LeavesTrail,
    DeletesAccounts,
    GivesPermissions,
    UserActions,
    StockUserAdmin,
    ModelAdmin,  # type: ignore[misc]
):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    ordering = ("email",)
    list_display = ("email", "name", "tier", "is_active", "is_staff", "last_login")
    list_filter = (
        "tier",
        "groups",
        "is_active",
        "is_staff",
        ("scim__deleted_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("email", "name")
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ("groups", "user_permissions")
    fieldsets = (
        (None, {"fields": ("email", "name", "password")}),
        (
            "Rights",
            {
                "fields": (
                    "tier",
                    "groups",
                    "cost_per_month",
                    "is_active",
                    "is_staff",
                    "is_superuser",
                )
            },
        ),
        ("Permissions", {"classes": ("collapse",), "fields": ("user_permissions",)}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("email", "name", "password1", "password2")}),
    )

    change_form_outer_after_template = "admin/unusual_of_user.html"

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        is_superuser = getattr(request.user, "is_superuser", False)
        return fields if is_superuser else (*fields, *_RIGHTS)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        context = extra_context or {}
        if object_id.isascii() and object_id.isdigit() and len(object_id) < 19:
            context = {**context, "signals": signals_of(int(object_id))}
        return super().change_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """From here on a suspension is the console's, whoever had suspended before."""
        if change and "is_active" in form.changed_data:
            forget_marks(obj)
            if not obj.is_active:
                transaction.on_commit(lambda: end_all_sign_ins(obj))
        super().save_model(request, obj, form, change)
        if change and "email" in form.changed_data:
            readdress(obj, obj.email)


class GroupGrantInline(StackedInline):  # type: ignore[misc]
    model = GroupGrant
    can_delete = False
    verbose_name = verbose_name_plural = "Models of this group"

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **more: Any) -> Any:
        return _names_field(db_field) or super().formfield_for_dbfield(db_field, request, **more)


@admin.register(Group)
class GroupAdmin(GivesPermissions, StockGroupAdmin, ModelAdmin):  # type: ignore[misc]
    nothing_here = (
        "There are no groups. A group gives its members models, and rights in this console."
    )
    inlines = (GroupGrantInline,)

    def save_model(self, request: HttpRequest, obj: Group, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "name" in form.changed_data:
            rename_in_policies(
                "groups", form.initial["name"], obj.name, f"{request.user} renamed the group."
            )

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return () if getattr(request.user, "is_superuser", False) else ("permissions",)


def _names_field(db_field: Any) -> Any:
    """Model names and features, as they are written by people."""
    if db_field.name == "features":
        boxes = UnfoldAdminCheckboxSelectMultipleWidget
        choices = Feature.choices
        return forms.MultipleChoiceField(choices=choices, widget=boxes, required=False)
    if db_field.name == "model_names":
        field = db_field.formfield(widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}))
        field.label = "Models"
        field.help_text = "Names or patterns between commas; * stands for anything."
        return field
    return None


_TIER_WORDS = {
    "slug": "Name in addresses",
    "requests_per_minute": "Requests per minute",
    "tokens_per_day": "Tokens per day",
    "tokens_per_month": "Tokens per month",
    "upload_mib": "Upload, in MiB",
    "cost_per_month": f"{settings.CURRENCY} per month",
    "context_tokens": "Context of a chat, in tokens",
    "api_priority": "Answers for programs wait",
    "weight": "Share of the engine",
    "concurrent_runs": "Answers at once",
    "chat_days": "Days from a chat's last message to its deletion",
}
"""What the list and the form call them."""


def _limit(field: str, form: str = "{:,}") -> Any:
    return figures(field, _TIER_WORDS[field], form)


class TierForm(forms.ModelForm):
    class Meta:
        model = Tier
        fields = "__all__"
        labels = _TIER_WORDS

    def clean_requests_per_minute(self) -> int | None:
        number: int | None = self.cleaned_data["requests_per_minute"]
        if number == 0:
            raise forms.ValidationError("With 0 nobody could ask. Empty is: as many as they like.")
        return number


@admin.register(Tier)
class TierAdmin(ModelAdmin):  # type: ignore[misc]
    form = TierForm
    list_display = (
        "name",
        "in_addresses",
        "num_requests",
        "num_runs",
        "num_tokens_a_day",
        "num_tokens_a_month",
        "num_cost",
        "num_weight",
    )
    search_fields = ("name", "slug")
    num_requests = _limit("requests_per_minute")
    num_runs = _limit("concurrent_runs")
    num_tokens_a_day = _limit("tokens_per_day")
    num_tokens_a_month = _limit("tokens_per_month")
    num_cost = _limit("cost_per_month", "{:,.2f}")
    num_weight = _limit("weight", "{:g}")
    fieldsets = (
        (None, {"fields": ("name", "slug", "model_names", "features")}),
        (
            "Limits, none where empty",
            {
                "fields": (
                    "requests_per_minute",
                    "concurrent_runs",
                    "tokens_per_day",
                    "tokens_per_month",
                    "cost_per_month",
                    "context_tokens",
                    "upload_mib",
                )
            },
        ),
        ("Where the engine is busy", {"fields": ("weight", "api_priority")}),
        (
            "How long chats are kept",
            {
                "fields": ("chat_days",),
                "description": "For ever where empty. Pinned, archived and shared ones go too, with"
                " what is attached to them, within an hour of the day; their owners read of it in"
                " their settings. What was deleted does not come back, but for a backup.",
            },
        ),
    )

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **more: Any) -> Any:
        return _names_field(db_field) or super().formfield_for_dbfield(db_field, request, **more)

    def get_readonly_fields(self, request: HttpRequest, obj: Tier | None = None) -> Any:
        return ("in_addresses",) if obj else ()  # users are of it by this name

    def get_fieldsets(self, request: HttpRequest, obj: Tier | None = None) -> Any:
        slug = "in_addresses" if obj else "slug"
        (title, first), *others = self.fieldsets
        names = [slug if name == "slug" else name for name in first["fields"]]
        return [(title, {"fields": names}), *others]

    @admin.display(description=_TIER_WORDS["slug"], ordering="slug")
    def in_addresses(self, row: Tier) -> str:
        return row.slug

    def has_delete_permission(self, request: HttpRequest, obj: Tier | None = None) -> bool:
        """New users need the free one, administrators theirs."""
        return obj is None or obj.slug not in ("free", "admin")


class ApiKeyForm(forms.ModelForm):
    def clean_expires_at(self) -> Any:
        end = self.cleaned_data["expires_at"]
        if end is None or "expires_at" not in self.changed_data:
            return end
        try:
            return key_end(end)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):  # type: ignore[misc]
    """Keys can be looked at, narrowed and revoked, which is for good; only their users are shown a
    secret."""

    nothing_here = "Nobody has an API key."
    form = ApiKeyForm

    list_display = ("prefix", "name", "user", "last_used_at", "expires_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "user__tier")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__email")
    readonly_fields = ("user", "prefix", "scopes", "created_at", "last_used_at")
    fields = (
        *readonly_fields,
        "name",
        "model_names",
        "requests_per_minute",
        "tokens_per_day",
        "expires_at",
        "revoked_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        is_revoked = obj is not None and obj.revoked_at is not None
        return (*self.readonly_fields, *(("expires_at", "revoked_at") if is_revoked else ()))

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "revoked_at" in form.changed_data:
            how = f"revoked in the console: {obj.prefix}"
            note_event(Kind.API_KEY, account=obj.user_id, how=how)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **more: Any) -> Any:
        return _names_field(db_field) or super().formfield_for_dbfield(db_field, request, **more)


@admin.register(Usage)
class UsageAdmin(EverybodysAdmin):
    """The ledger, of everybody."""

    nothing_here = "Nobody has asked anything."
    list_display = (
        "day",
        "owner",
        "model",
        "key",
        "num_answers",
        "num_read",
        "num_cached",
        "num_written",
        "num_cost",
    )
    num_answers = figures("num_requests", "Answers")
    num_read = figures("prompt_tokens", "Tokens read")
    num_cached = figures("cached_tokens", "From the cache")
    num_written = figures("completion_tokens", "Tokens written")
    num_cost = figures("cost", f"Cost, {settings.CURRENCY}", "{:,.4f}")
    fields = readonly_fields = list_display
    list_filter = (
        "day",
        one_of("model", "model", lambda: distinct(Usage.objects.all(), "model")),
        "owner__tier",
    )
    show_full_result_count = False
    list_select_related = ("owner",)
    search_fields = ("owner__email", "model")
    ordering = ("-day", "owner", "model")

    @admin.display(description="API key", ordering="api_key_id")
    def key(self, row: Usage) -> str:
        return "–" if row.api_key_id is None else f"No. {row.api_key_id}"


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """Who changed what in this console."""

    nothing_here = "Nothing has been changed in this console."
    list_display = ("time", "user", "action", "kind", "what", "change")
    fields = readonly_fields = list_display
    list_filter = ("action_time", "action_flag", "content_type", "user")
    list_select_related = ("user", "content_type")
    search_fields = ("object_repr", "user__email")

    @admin.display(description="time", ordering="action_time")
    def time(self, entry: LogEntry) -> Any:
        return entry.action_time

    @admin.display(description="action", ordering="action_flag")
    def action(self, entry: LogEntry) -> str:
        return str(entry.get_action_flag_display())

    @admin.display(description="kind", ordering="content_type")
    def kind(self, entry: LogEntry) -> str:
        return "–" if entry.content_type is None else str(entry.content_type.name)

    @admin.display(description="what", ordering="object_repr")
    def what(self, entry: LogEntry) -> str:
        return str(entry.object_repr)

    @admin.display(description="change")
    def change(self, entry: LogEntry) -> str:
        return entry.get_change_message()
