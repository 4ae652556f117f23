"""JSON schemas without words that hold no value to anything. Torch-free."""

from collections.abc import Iterator
from typing import Any

_FORMATS = frozenset(
    {"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"}
)
_NAMED = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_VALUES = frozenset({"enum", "const", "default", "example", "examples", "x-guidance"})
_NOT_HELD_TO = (
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
)
_BELOW, _ABOVE = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_SIZES = ("maxLength", "maxItems", "maxProperties")
_LARGEST_NUMBER = 2**63 - 1024  # the double next to the end of 64 bits
_LARGEST_SIZE = 2**31 - 1


def plain(schema: Any) -> Any:
    """The schema as llguidance takes it. Every value of the new schema is one of the old.

    A `format` that it does not know is an annotation, by JSON Schema, and `uniqueItems: false` forbids
    nothing. Bounds beyond 64 bits, and lengths that no answer has, are brought to what it can do.
    Raises RecursionError.
    """
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    new = {word: _plain_value(word, value) for word, value in schema.items()}
    if isinstance(format_ := new.get("format"), str) and format_ not in _FORMATS:
        del new["format"]
    if new.get("uniqueItems") is False:
        del new["uniqueItems"]
    return new


def _plain_value(word: str, value: Any) -> Any:
    if word in _VALUES:
        return value
    if word in _NAMED and isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool):
        if word in _BELOW:
            return max(value, -_LARGEST_NUMBER)
        if word in _ABOVE:
            return min(value, _LARGEST_NUMBER)
        if word in _SIZES:
            return min(value, _LARGEST_SIZE)
    return plain(value)


def not_held_to(schema: Any) -> str:
    """A sentence about the first words in a schema that no grammar can hold a value to, and where they
    stand; empty where there are none."""
    for place, one in _schemas(schema, "#"):
        if words := [word for word in _NOT_HELD_TO if word in one]:
            listed = ", ".join(f"`{word}`" for word in words)
            return f"{listed} at {place} cannot be held to"
    return ""


def _schemas(value: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas in one, outermost first, with the places where they stand."""
    if isinstance(value, list):
        for at, one in enumerate(value):
            yield from _schemas(one, f"{place}/{at}")
    elif isinstance(value, dict):
        yield place, value
        for word, one in value.items():
            if word in _NAMED and isinstance(one, dict):
                for name, own in one.items():
                    yield from _schemas(own, f"{place}/{word}/{name}")
            elif word not in _VALUES:
                yield from _schemas(one, f"{place}/{word}")
