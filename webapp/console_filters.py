"""Filters of the console's lists whose choices are known, or found by an index.

Django's own looks for the values of a column in every row of the table, whenever the list is shown.
"""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

MAX_VALUES = 100
"""More than a person looks through; each is a query."""


def one_of(field: str, title: str, values: Callable[[], Iterable[str]]) -> type[Any]:
    """A filter by `field` with these choices, under the address that Django's own would have."""

    class OneOf(admin.SimpleListFilter):
        parameter_name = field

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(value, value) for value in values()]

        def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
            value = self.value()
            return rows if value is None else rows.filter(**{field: value})

    OneOf.title = title
    return OneOf


def distinct(rows: QuerySet[Any], field: str) -> list[str]:
    """Up to MAX_VALUES of what stands in `field`, by an index that begins with it: one short query a
    value, however many rows have it."""
    found: list[str] = []
    while len(found) < MAX_VALUES:
        later = rows.filter(**{f"{field}__gt": found[-1]}) if found else rows
        value = later.order_by(field).values_list(field, flat=True).first()
        if value is None:
            break
        found.append(value)
    return found
