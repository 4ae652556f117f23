"""People, tiers and keys in the admin console."""

from typing import Any

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm, UserChangeForm
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.models import ApiKey, Tier, User
from webapp.tenancy import as_system

admin.site.site_header = admin.site.site_title = "Vitrine"
# One door for passwords, with its rate limit; the admin's own form would be a second one.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


class UserCreationForm(BaseUserCreationForm):
    class Meta:
        model = User
        fields = ("email", "name")


class UserEditForm(UserChangeForm):
    class Meta:
        model = User
        fields = "__all__"


@admin.register(User)
class UserAdmin(StockUserAdmin):
    form = UserEditForm
    add_form = UserCreationForm
    ordering = ("email",)
    list_display = ("email", "name", "tier", "is_active", "is_staff", "last_login")
    list_filter = ("tier", "is_active", "is_staff")
    search_fields = ("email", "name")
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ("groups", "user_permissions")
    fieldsets = (
        (None, {"fields": ("email", "name", "password")}),
        ("Rights", {"fields": ("tier", "is_active", "is_staff", "is_superuser")}),
        ("Permissions", {"classes": ("collapse",), "fields": ("groups", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("email", "name", "password1", "password2")}),
    )

    # A user takes everything along, and only the system's scope sees what that is.

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        with as_system():
            return super().get_deleted_objects(objs, request)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        with as_system():
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        with as_system():
            super().delete_queryset(request, queryset)


@admin.register(Tier)
class TierAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "concurrent_runs", "weight")


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    """Keys can be looked at and revoked; only `manage.py createapikey` can show a secret."""

    list_display = ("prefix", "name", "user", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__email")
    readonly_fields = ("user", "prefix", "scopes", "created_at", "last_used_at")
    fields = (*readonly_fields, "name", "expires_at", "revoked_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
