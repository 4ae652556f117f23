"""What OpenAI publishes of its API: whether an answer of ours is one of theirs.

The file is not a part of this repository. It lies beside the checkout, or where OPENAI_OPENAPI says.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.sites import ROOT

_PLACE = ROOT.parent / "shared" / "data" / "openai-openapi" / "openapi.json"
DESCRIPTION = Path(os.environ.get("OPENAI_OPENAPI", _PLACE))

needs_description = pytest.mark.skipif(
    not DESCRIPTION.exists(), reason="OpenAI's published API description is not here"
)

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def problems_with(value: Any, name: str) -> list[str]:
    """What is wrong with `value` as the schema `name`, one line each; none where it is as published."""
    return _problems(value, {"$ref": f"#/components/schemas/{name}"}, name)


def check(value: Any, name: str) -> None:
    found = problems_with(value, name)
    assert not found, "\n".join([*found, json.dumps(value)[:2000]])


@cache
def _description() -> Any:
    return json.loads(DESCRIPTION.read_text())


def _resolved(reference: str) -> Any:
    found = _description()
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def _problems(value: Any, schema: Any, at: str) -> list[str]:
    """JSON Schema as far as the description uses it for answers, and OpenAPI 3.0's `nullable`."""
    if schema is True or (value is None and schema.get("nullable")):
        return []
    found: list[str] = []
    if reference := schema.get("$ref"):
        found += _problems(value, _resolved(reference), at)
    for part in schema.get("allOf", []):
        found += _problems(value, part, at)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        found += _closest(value, options, at)
    if "type" in schema and not _is_of_type(value, schema["type"]):
        return [*found, f"{at}: {value!r:.80} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r:.80} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r:.80} is not {schema['const']!r}")
    if isinstance(value, dict):
        found += _of_object(value, schema, at)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found += _problems(item, schema["items"], f"{at}[{index}]")
    return found + _bounds(value, schema, at)


def _is_of_type(value: Any, names: Any) -> bool:
    names = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names)


def _closest(value: Any, options: list[Any], at: str) -> list[str]:
    """None if one option fits; else what is wrong with the one that fits best.

    Of `oneOf` more than one may fit: the description's own options overlap.
    """
    of_options = [_problems(value, option, at) for option in options]
    return min(of_options, key=lambda found: (_is_other(found, at), len(found)))


def _is_other(found: list[str], at: str) -> bool:
    """Whether it is the kind of thing that is another one, and not a detail of it."""
    return any(problem.startswith((f"{at}.type:", f"{at}: ")) for problem in found)


def _of_object(value: dict[str, Any], schema: Any, at: str) -> list[str]:
    found = [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            found += _problems(item, known[name], f"{at}.{name}")
        elif others is False:
            found.append(f"{at}: {name} is unknown")
        elif isinstance(others, dict):
            found += _problems(item, others, f"{at}.{name}")
    return found


def _bounds(value: Any, schema: Any, at: str) -> list[str]:
    found = []
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{at}: {value!r:.80} does not match {schema['pattern']}")
        if len(value) > schema.get("maxLength", len(value)):
            found.append(f"{at}: longer than {schema['maxLength']}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            found.append(f"{at}: {value} is less than {schema['minimum']}")
        if value > schema.get("maximum", value):
            found.append(f"{at}: {value} is more than {schema['maximum']}")
    if isinstance(value, list) and len(value) < schema.get("minItems", 0):
        found.append(f"{at}: fewer than {schema['minItems']} items")
    return found


def fields_of(name: str) -> set[str]:
    """Every field that the schema `name` knows, whichever of its branches it is in."""
    return _fields({"$ref": f"#/components/schemas/{name}"})


def _fields(schema: Any) -> set[str]:
    if reference := schema.get("$ref"):
        return _fields(_resolved(reference))
    found = set(schema.get("properties", {}))
    for kind in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(kind, []):
            found |= _fields(part)
    return found
