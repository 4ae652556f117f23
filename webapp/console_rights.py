"""What a member of staff may do to the accounts of others in the admin console.

Rights in the console are given by superusers alone. Whoever may change accounts could else make
themselves one, or enter as one by a new password, address or connected account of theirs.
"""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from webapp.security_events import Kind, note_event


class BelowOneself:
    """For a ModelAdmin: rows of staff are made, changed and deleted by superusers only, but for one's
    own. With `trail` each such act is a security event of that kind."""

    trail: Kind | None = None

    def account_of(self, obj: Any) -> Any:
        """Whose the row is."""
        return obj

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may: bool = super().has_change_permission(request, obj)  # type: ignore[misc]
        return may and self._is_below(request.user, obj, or_own=True)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may: bool = super().has_delete_permission(request, obj)  # type: ignore[misc]
        return may and self._is_below(request.user, obj, or_own=False)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Whose the row is to be counts as well: it may be new, or was somebody else's before."""
        if not self._is_below(request.user, obj, or_own=True):
            raise PermissionDenied
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        self._note(obj, "changed in the console" if change else "made in the console")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)  # type: ignore[misc]
        self._note(obj, "removed in the console")

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        rows = list(queryset) if self.trail else []
        super().delete_queryset(request, queryset)  # type: ignore[misc]
        for row in rows:
            self._note(row, "removed in the console")

    def _note(self, obj: Any, how: str) -> None:
        if self.trail:
            note_event(self.trail, account=self.account_of(obj).pk, how=how)

    def _is_below(self, user: Any, obj: Any, *, or_own: bool) -> bool:
        if obj is None or user.is_superuser:
            return True
        account = self.account_of(obj)
        is_own = account.pk == user.pk
        return not (account.is_staff or account.is_superuser) or (or_own and is_own)


class GivesPermissions:
    """For a ModelAdmin with a field of permissions: those of what the console shows, which alone asks
    for any, and those that are given already."""

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.related_model is Permission:
            match: Any = request.resolver_match
            kwargs["queryset"] = _permissions_for(db_field, match.kwargs.get("object_id"))
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]


def _permissions_for(db_field: Any, pk: str | None) -> QuerySet[Permission]:
    shown: Any = admin.site._registry
    kinds = [
        one.pk
        for one in ContentType.objects.get_for_models(*shown, for_concrete_models=False).values()
    ]
    rows = Permission.objects.select_related("content_type")
    has_it = Q(**{db_field.model._meta.model_name: pk}) if (pk or "").isdigit() else Q(pk=None)
    return rows.filter(Q(content_type__in=kinds) | has_it).distinct()
