"""Arguments of calls in tags, each value between tags of its own and texts without quotes, as
Qwen3-Coder writes them. Torch-free.

    <parameter=city>
    Oslo
    </parameter>

The other half, which reads them, is in `call_forms`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from llguidance import LLMatcher

from inference.call_forms import pointed
from inference.call_grammars import HERMES_MARKS, escaped, without
from inference.grammar import json_part

_CLOSE = "</parameter>"
_END = f"\n{_CLOSE}\n"
_ABOUT = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
_OF_ALL = _ABOUT | {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$defs",
    "definitions",
}
_LIMITS = frozenset({"minLength", "maxLength", "pattern"})
_OF_TEXTS = _ABOUT | _LIMITS | {"type", "enum", "const"}


def tagged_parts(name: str, schema: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The grammar `@name` of a function's arguments with the parts that it calls, in the order of the
    schema. None where tags cannot say all that it wants; then arguments are JSON."""
    if not _is_plain(schema):
        return None
    properties, required = schema["properties"], schema.get("required", [])
    rules, places, parts = [], [], []
    for at, (key, given) in enumerate(properties.items()):
        wanted = pointed(given, schema)
        if not re.fullmatch(r"[^>\n]+", key) or not _stands_alone(wanted):
            return None
        if wanted.get("type") == "string":
            if (terminal := _text_terminal(f"TEXT{at}", wanted)) is None:
                return None
            value = f"TEXT{at}"
        else:
            shared = {one: schema[one] for one in ("$defs", "definitions") if one in schema}
            parts.append(json_part(f"{name}_{at}", shared | wanted))
            value, terminal = f"@{name}_{at} {json.dumps(_END)}", ""
        opening = json.dumps(f"<parameter={key}>\n")
        rules.append(f"p{at}: {opening} {value}\n{terminal}")
        places.append(f"p{at}" if key in required else f"p{at}?")
    rules.append(f"start: {' '.join(places) or json.dumps('')}")
    grammar = "\n".join(rules)
    return [{"name": name, "lark_grammar": grammar}, *parts]


def _is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether it names its properties, and says nothing about them together. Callers may have written
    anything."""
    properties, required = schema["properties"], schema.get("required", [])
    if not _OF_ALL.issuperset(schema) or not isinstance(properties, dict):
        return False
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return False
    definitions = [schema.get(place, {}) for place in ("$defs", "definitions")]
    if not all(
        isinstance(held, dict) and all(map(_stands_alone, held.values())) for held in definitions
    ):
        return False
    # Without any said there may be others, which `closed_schema` takes away where some are named.
    is_closed = schema.get("additionalProperties", not properties) is False
    return is_closed and properties.keys() >= set(required)


def _stands_alone(schema: Any) -> bool:
    """Whether a property's schema means the same without the others: it refers to nothing but
    definitions, of which it has none of its own."""
    if not isinstance(schema, dict):
        return False
    places = ("#/$defs/", "#/definitions/")
    return all(isinstance(one, str) and one.startswith(places) for one in _references(schema))


def _references(value: Any) -> Iterator[Any]:
    """What it refers to; None for definitions of its own."""
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name in ("$ref", "$dynamicRef"):
                yield one
            elif name in ("$defs", "definitions", "$id", "$anchor", "$dynamicAnchor"):
                yield None
            yield from _references(one)


def _text_terminal(name: str, schema: Mapping[str, Any]) -> str | None:
    """Texts of the schema up to and with their closing tag, which no text spells. None: it wants what
    no regular expression says."""
    if not _OF_TEXTS.issuperset(schema):
        return None
    texts = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if texts is not None:
        if _LIMITS & schema.keys() or {"enum", "const"} <= schema.keys():
            return None  # some of them may not be meant
        if not isinstance(texts, list) or not texts:
            return None
        if any(not isinstance(one, str) or _is_spelled(one) for one in texts):
            return None
        return f"{name}: " + " | ".join(json.dumps(one + _END) for one in texts)
    least, most = schema.get("minLength", 0), schema.get("maxLength", "")
    if not isinstance(least, int) or not (most == "" or isinstance(most, int)):
        return None
    closing = rf"\n{escaped(_CLOSE)}\n"
    conditions = [f"/(?s:.{{{least},{most}}}){closing}/"]
    if "pattern" in schema:
        pattern = schema["pattern"]
        if not isinstance(pattern, str) or (whole := _whole(pattern)) is None:
            return None
        conditions.append(f"/{whole}{closing}/")
    tag = escaped(_CLOSE)
    conditions.append(without([*map(escaped, HERMES_MARKS), f"{tag}(?s:.*){tag}"]))
    terminal = f"{name}: {' & '.join(conditions)}"
    is_sound = not LLMatcher.validate_grammar(f"start: {name}\n{terminal}")
    return terminal if is_sound else None


def _is_spelled(text: str) -> bool:
    return any(mark in text for mark in (*HERMES_MARKS, _CLOSE))


def _whole(pattern: str) -> str | None:
    """Of a whole text in which the pattern is to be found, as JSON Schema means it."""
    begins, ends = pattern.startswith("^"), re.search(r"(?<!\\)\$$", pattern) is not None
    body = pattern[begins : len(pattern) - ends]
    if "|" in body and (begins or ends) and not re.fullmatch(r"\([^()]*\)", body):
        return None  # an anchor may be of one branch alone
    body = re.sub(r"(?<!\\)/", r"\/", body)
    return f"{'' if begins else '(?s:.*)'}({body}){'' if ends else '(?s:.*)'}"
