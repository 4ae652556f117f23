"""Columns of the console's lists."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin


def figures(field: str, title: str, form: str = "{:,}") -> Callable[[Any, Any], str]:
    """Numbers one below the other: where its name in `list_display` begins with `num_`,
    static/css/admin.css sets a column to the right. None is a dash."""

    @admin.display(description=title, ordering=field)
    def column(self: Any, row: Any) -> str:
        value = getattr(row, field)
        return "–" if value is None else form.format(value)

    return column
