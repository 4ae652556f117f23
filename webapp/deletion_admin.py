"""Deleting accounts in the admin console, as their owners would (webapp/own_data.py)."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from chat.access import seeing_deleted
from chat.models import Message
from retrieval.models import Document
from webapp.models import User
from webapp.own_data import LastAdministrator, end_account
from webapp.tenancy import as_system

_STAYS = (LogEntry,)
_BELOW = ((Message, "conversation__owner"), (Document, "collection__owner"))
"""What does not name its owner itself, and is too much to be left unsaid."""


class DeletesAccounts:
    """For a ModelAdmin of users. What goes along is counted, and never loaded or listed: a person may
    have a hundred thousand messages. Who may delete an account may delete what hangs on it."""

    def get_deleted_objects(
        self, objs: Sequence[User] | QuerySet[User], request: HttpRequest
    ) -> Any:
        users = list(objs)
        counts = rows_of(users)
        shown = [f"{user.email}" for user in users]
        may = self.has_delete_permission  # type: ignore[attr-defined]
        is_forbidden = not all(may(request, user) for user in users)
        forbidden = {str(User._meta.verbose_name)} if is_forbidden else set()
        return shown, counts, forbidden, _last_administrators(users)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Without Django's transaction around it all: the account is closed before anything of it goes,
        and what has gone stays gone, with its files, should the rest fail."""
        page: HttpResponse = self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]
        return page

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        try:
            end_account(obj)
        except LastAdministrator:
            raise PermissionDenied from None

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            try:
                end_account(user)
            except LastAdministrator:
                text = f"{user.email} is the last administrator, and stays."
                messages.error(request, text)


def rows_of(users: Sequence[User]) -> dict[str, int]:
    """How many rows of each kind go with these accounts, by the names of the kinds. A query for each
    kind; all are the system's to count."""
    ids = [user.pk for user in users]
    counts = {str(User._meta.verbose_name_plural): len(ids)}
    relations: Sequence[Any] = User._meta.get_fields(include_hidden=True)
    kinds: list[tuple[Any, str]] = [
        (relation.related_model, relation.field.name)
        for relation in relations
        if getattr(relation, "on_delete", None) is models.CASCADE
        and not relation.related_model._meta.auto_created
        and relation.related_model not in _STAYS
    ]
    with as_system(), seeing_deleted():
        for model, owner in (*kinds, *_BELOW):
            number = model._base_manager.filter(**{f"{owner}__in": ids}).count()
            if number:
                name = str(model._meta.verbose_name_plural)
                counts[name] = counts.get(name, 0) + number
    return counts


def _last_administrators(users: Sequence[User]) -> list[str]:
    """Those of them without whom nobody could make another one."""
    ids = [user.pk for user in users]
    administrators = User.objects.filter(is_superuser=True, is_active=True)
    if administrators.exclude(pk__in=ids).exists():
        return []
    return [f"{user.email}: the last administrator" for user in administrators.filter(pk__in=ids)]
