"""What programs note of documents, and filters over it, within the statement that finds documents.

Values are texts, numbers and truth values; those of different kinds are unequal, and neither is more.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from retrieval.models import Collection, Document

Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]

_MORE_OR_LESS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_VALUE = "(retrieval_document.attributes -> %s)"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`value` is a list for `in` and `nin`. What has no such attribute is unequal to everything."""

    key: str
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class Compound:
    """All of the parts (`and`), or one of them (`or`)."""

    operator: Literal["and", "or"]
    parts: Sequence["Comparison | Compound"]


def matching(collection: Collection, wanted: Comparison | Compound) -> "QuerySet[Document]":
    """The collection's documents whose attributes are like that."""
    sql, parameters = _condition(wanted)
    # What callers have given are parameters, and none of it is SQL.
    condition = RawSQL(sql, parameters, output_field=BooleanField())  # noqa: S611
    return Document.objects.filter(condition, collection=collection)


def _condition(wanted: Comparison | Compound) -> tuple[str, list[Any]]:
    if isinstance(wanted, Comparison):
        return _comparison(wanted)
    if not wanted.parts:
        return ("true" if wanted.operator == "and" else "false"), []
    found = [_condition(part) for part in wanted.parts]
    glue = " AND " if wanted.operator == "and" else " OR "
    parameters = [value for _, values in found for value in values]
    return "(" + glue.join(sql for sql, _ in found) + ")", parameters


def _comparison(wanted: Comparison) -> tuple[str, list[Any]]:
    """Never null: it may stand beneath an `or`."""
    if wanted.operator in ("in", "nin"):
        values = [json.dumps(value) for value in wanted.value]
        is_in = f"coalesce({_VALUE} = ANY(%s::jsonb[]), false)"
        return (is_in if wanted.operator == "in" else f"(NOT {is_in})"), [wanted.key, values]
    value = json.dumps(wanted.value)
    if wanted.operator in ("eq", "ne"):
        is_equal = f"coalesce({_VALUE} = %s::jsonb, false)"
        return (is_equal if wanted.operator == "eq" else f"(NOT {is_equal})"), [wanted.key, value]
    sign = _MORE_OR_LESS[wanted.operator]
    same = f"jsonb_typeof({_VALUE}) = jsonb_typeof(%s::jsonb)"
    sql = f"coalesce({same} AND {_VALUE} {sign} %s::jsonb, false)"
    return sql, [wanted.key, value, wanted.key, value]
