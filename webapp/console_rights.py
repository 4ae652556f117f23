"""What a member of staff may do to the accounts of others in the admin console.

Rights in the console are given by superusers alone. Whoever may change accounts could else make
themselves one, or enter as one by a new password or address of theirs.
"""

from typing import Any

from django.http import HttpRequest


class BelowOneself:
    """For a ModelAdmin: rows of staff are changed and deleted by superusers only, but for one's own."""

    def account_of(self, obj: Any) -> Any:
        """Whose the row is."""
        return obj

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may: bool = super().has_change_permission(request, obj)  # type: ignore[misc]
        return may and self._is_below(request.user, obj, or_own=True)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may: bool = super().has_delete_permission(request, obj)  # type: ignore[misc]
        return may and self._is_below(request.user, obj, or_own=False)

    def _is_below(self, user: Any, obj: Any, *, or_own: bool) -> bool:
        if obj is None or user.is_superuser:
            return True
        account = self.account_of(obj)
        is_own = account.pk == user.pk
        return not (account.is_staff or account.is_superuser) or (or_own and is_own)
