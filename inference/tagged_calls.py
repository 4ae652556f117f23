"""Arguments of calls in tags, each value between tags of its own and texts without quotes, as
Qwen3-Coder writes them. Torch-free.

    <parameter=city>
    Oslo
    </parameter>

The other half, which reads them, is in `call_forms`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from llguidance import LLMatcher

from inference.call_forms import CALL_CLOSE, CALL_OPEN, THINK_CLOSE, THINK_OPEN, pointed
from inference.grammar import json_part

_CLOSE = "</parameter>"
_MARKS = (CALL_OPEN, CALL_CLOSE, THINK_OPEN, THINK_CLOSE)
_ABOUT = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
_OF_ALL = _ABOUT | {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "$defs",
    "definitions",
}
_OF_TEXTS = _ABOUT | {"type", "enum", "const", "minLength", "maxLength", "pattern"}


def tagged_parts(name: str, schema: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The grammar `@name` of a function's arguments with the parts that it calls, in the order of the
    schema. None where tags cannot say all that it wants; then arguments are JSON."""
    properties, required = schema["properties"], schema.get("required", [])
    if not _OF_ALL.issuperset(schema) or not set(required) <= properties.keys():
        return None
    rules, places, parts = [], [], []
    for at, (key, given) in enumerate(properties.items()):
        wanted = pointed(given, schema)
        if re.search(r"[>\n]", key) or not isinstance(wanted, dict):
            return None
        if wanted.get("type") == "string":
            if (terminal := _text_terminal(f"TEXT{at}", wanted)) is None:
                return None
            value = f"TEXT{at}"
        else:
            shared = {one: schema[one] for one in ("$defs", "definitions") if one in schema}
            parts.append(json_part(f"{name}_{at}", shared | wanted))
            value, terminal = f'@{name}_{at} "\\n{_CLOSE}\\n"', ""
        rules.append(f"p{at}: {json.dumps(f'<parameter={key}>')} {_LINE} {value}\n{terminal}")
        places.append(f"p{at}" if key in required else f"p{at}?")
    rules.append(f"start: {' '.join(places) or json.dumps('')}")
    grammar = "\n".join(rules)
    return [{"name": name, "lark_grammar": grammar}, *parts]


_LINE = '"\\n"'


def _text_terminal(name: str, schema: Mapping[str, Any]) -> str | None:
    """Texts of the schema up to and with their closing tag, which no text spells. None: it wants what
    no regular expression says."""
    if not _OF_TEXTS.issuperset(schema):
        return None
    texts = schema.get("enum", [schema["const"]] if "const" in schema else None)
    end = f"\n{_CLOSE}\n"
    if texts is not None:
        if not texts or any(not isinstance(one, str) or _is_spelled(one) for one in texts):
            return None
        return f"{name}: " + " | ".join(json.dumps(one + end) for one in texts)
    least, most = schema.get("minLength", 0), schema.get("maxLength", "")
    closing = re.escape(end).replace("/", r"\/").replace("\n", "n")
    conditions = [f"/(?s:.{{{least},{most}}}){closing}/"]
    if "pattern" in schema:
        if (whole := _whole(schema["pattern"])) is None:
            return None
        conditions.append(f"/{whole}{closing}/")
    spelled = "|".join([*map(re.escape, _MARKS), f"{_CLOSE}(?s:.*){_CLOSE}"]).replace("/", r"\/")
    terminal = f"{name}: {' & '.join(conditions)} & ~/(?s:.*)({spelled})(?s:.*)/"
    is_sound = not LLMatcher.validate_grammar(f"start: {name}\n{terminal}")
    return terminal if is_sound else None


def _is_spelled(text: str) -> bool:
    return any(mark in text for mark in (*_MARKS, _CLOSE))


def _whole(pattern: str) -> str | None:
    """Of a whole text in which the pattern is to be found, as JSON Schema means it."""
    begins, ends = pattern.startswith("^"), re.search(r"(?<!\\)\$$", pattern) is not None
    body = pattern[begins : len(pattern) - ends]
    if "|" in body and (begins or ends) and not re.fullmatch(r"\([^()]*\)", body):
        return None  # an anchor may be of one branch alone
    body = re.sub(r"(?<!\\)/", r"\/", body)
    return f"{'' if begins else '(?s:.*)'}({body}){'' if ends else '(?s:.*)'}"
