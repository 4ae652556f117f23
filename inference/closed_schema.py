"""JSON schemas of people who did not say that there is nothing else. Torch-free."""

from typing import Any

_ONE = ("items", "contains")
_MANY = ("anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions")
_JOINING = frozenset(
    {"$ref", "anyOf", "oneOf", "not", "if", "dependentSchemas"}
    | {"patternProperties", "unevaluatedProperties"}
)


def closed(schema: Any) -> Any:
    """The schema, whose objects have no properties but those that they name, if they name any.

    JSON Schema allows any others, and a model in doubt goes on inventing them; vLLM's default
    (xgrammar's strict mode) closes them, too. Every value of the new schema is one of the old. A schema
    in which one object is described in several places stays as it is: what one calls other, another
    may name.
    """
    return schema if _joins(schema) else _closed(schema)


def _joins(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_joins, value))
    if not isinstance(value, dict):
        return False
    is_joined = "properties" in value and not _JOINING.isdisjoint(value)
    return is_joined or "allOf" in value or any(map(_joins, value.values()))


def _closed(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    new = dict(schema)
    for name in _ONE:
        if name in schema:
            new[name] = _closed(schema[name])
    for name in _MANY:
        if isinstance(schema.get(name), list):
            new[name] = [_closed(one) for one in schema[name]]
    for name in _NAMED:
        if isinstance(schema.get(name), dict):
            new[name] = {key: _closed(one) for key, one in schema[name].items()}
    if _names_all(schema):
        new.setdefault("additionalProperties", False)
    return new


def _names_all(schema: dict[str, Any]) -> bool:
    """Whether it names properties, those that it requires among them."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not properties or not isinstance(properties, dict) or not isinstance(required, list):
        return False
    return all(isinstance(name, str) and name in properties for name in required)
