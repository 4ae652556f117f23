"""Rows as the SQL functions take them that save for many people at once."""

import json
from collections.abc import Sequence
from typing import Any

from django.db.models import Model


def as_row(instance: Model) -> dict[str, Any]:
    """By column, as Django would save it; what it sets when it saves is set."""
    instance._state.adding, instance._state.db = False, "default"
    return {
        field.column: field.pre_save(instance, add=True) for field in instance._meta.concrete_fields
    }


def as_rows(instances: Sequence[Model]) -> list[dict[str, Any]]:
    return [as_row(instance) for instance in instances]


def dumped(values: object) -> str:
    """For a jsonb parameter: ids, times and amounts as Postgres reads them."""
    return json.dumps(values, default=str)
