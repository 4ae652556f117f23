"""How model families write tool calls and thinking, and how a written call is read.

A family is told by what its chat template writes. Templates are transformers' response templates;
JSON is read here and not there, so that a model's mistake raises nothing.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from inference.strict_json import DECODER, read_json

CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
Template = dict[str, Any]
Properties = Mapping[str, Mapping[str, Any]]
"""The parameters of each offered tool: their schemas by name."""


@dataclass(frozen=True, slots=True)
class Call:
    """A complete tool call. `arguments` is a JSON object as text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """`opening` and `closing` are written around what turns out to be no call, so it is seen whole."""

    template: Template
    opening: str = ""
    closing: str = ""
    read: Callable[[str, Properties], list[Call]] = lambda raw, offered: []

    def begun(self, prompt_tail: str) -> str | None:
        """What the template has written of the answer itself: all behind the last anchor, which is
        the template's, whatever people wrote before. None: there is no anchor."""
        ends = [
            at + len(anchor)
            for anchor in self.template["start_anchor"]
            if (at := prompt_tail.rfind(anchor)) >= 0
        ]
        return prompt_tail[max(ends) :] if ends else None


def family_of(chat_template: str, *, has_tools: bool) -> Family:
    """The family whose marks a chat template writes; without any, all of the answer is text."""
    if "<|channel|>" in chat_template:
        return HARMONY
    if "<｜tool▁calls▁begin｜>" in chat_template:
        return DEEPSEEK
    if "[TOOL_CALLS]" in chat_template or "[THINK]" in chat_template:
        return MISTRAL
    if CALL_OPEN in chat_template or THINK_OPEN in chat_template:
        return HERMES
    # Llama's calls are bare JSON: where nobody offers a tool, it is an answer in JSON.
    if "<|python_tag|>" in chat_template and has_tools:
        return LLAMA
    return PLAIN


def _template(anchors: list[str], calls: Template, **fields: Template) -> Template:
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": anchors,
        "fields": {
            **fields,
            "tool_call": {"repeats": True, "content": "text", **calls},
            "content": {"content": "text"},
        },
    }


def _between(opening: str, closing: str) -> Template:
    return {"open": opening, "close": closing, "content": "text"}


# --- reading ---------------------------------------------------------------------------------


def loaded(text: str) -> Any:
    """None for what is no JSON; numbers that JSON cannot write (NaN, 1e999) are none."""
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return None


def _call(name: object, arguments: object) -> list[Call]:
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return []
    return [Call(name, json.dumps(arguments, ensure_ascii=False))]


def _read_object(value: Any) -> list[Call]:
    if not isinstance(value, dict):
        return []
    return _call(value.get("name"), value.get("arguments", value.get("parameters", {})))


def _read_hermes(raw: str, offered: Properties) -> list[Call]:
    """{"name": …, "arguments": {…}}, or Qwen3-Coder's tags inside of the same marks."""
    if (tagged := _FUNCTION.fullmatch(raw.strip())) is None:
        return _read_object(loaded(raw))
    name = tagged["name"]
    return _call(name, _read_tags(tagged["body"], offered.get(name, {})))


def _read_tags(body: str, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """JSON ends where it ends, whatever tags its strings spell; a text, and what is no JSON, at the next
    closing tag."""
    arguments: dict[str, Any] = {}
    at = 0
    while opening := _OPENING.search(body, at):
        key, at = opening["key"], opening.end()
        schema = schemas.get(key)
        if not _is_text(schema):
            with suppress(ValueError, RecursionError):
                value, end = DECODER.raw_decode(body, _behind_space(body, at))
                closing = _CLOSING.match(body, end)
                if closing and not _is_rather_text(value, body[at:end], schema):
                    arguments[key], at = value, closing.end()
                    continue
        if (closing := _CLOSING_OF_TEXT.search(body, at)) is None:
            break
        arguments[key] = _typed(body[at : closing.start()], schema)
        at = closing.end()
    return arguments


_FUNCTION = re.compile(r"<function=(?P<name>[^>\n]+)>(?P<body>.*?)(?:</function>)?", re.DOTALL)
_OPENING = re.compile(r"<parameter=(?P<key>[^>\n]{1,1000})>\n?")
_CLOSING = re.compile(r"\s*</parameter>")
_CLOSING_OF_TEXT = re.compile(r"\n?</parameter>")


def pointed(schema: Any, root: Mapping[str, Any]) -> Any:
    """What a schema that is nothing but a reference into `root`, and words about it, points to; any
    other as it is."""
    for _ in range(8):  # references may lead to references, and in a circle
        is_bare = isinstance(schema, dict) and _WORDS.issuperset(schema)
        target = schema.get("$ref") if is_bare else None
        found = _REFERENCE.fullmatch(target) if isinstance(target, str) else None
        held = root.get(found["place"]) if found else None
        if found is None or not isinstance(held, dict) or found["name"] not in held:
            return schema
        schema = held[found["name"]]
    return schema


def with_branches_pointed(schema: Any, root: Mapping[str, Any]) -> Any:
    """The same of a schema's branches as well: an optional one of a definition is one of two."""
    schema = pointed(schema, root)
    if not isinstance(schema, dict):
        return schema
    branches = {key: schema[key] for key in _BRANCHES if isinstance(schema.get(key), list)}
    return schema | {key: [pointed(one, root) for one in held] for key, held in branches.items()}


_BRANCHES = ("anyOf", "oneOf", "allOf")
_WORDS = frozenset({"$ref", "title", "description", "default", "examples"})
_REFERENCE = re.compile(r"#/(?P<place>\$defs|definitions)/(?P<name>[^/~%]+)")


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"


def _typed(text: str, schema: Any) -> Any:
    """A value that was written without quotes: text, unless its schema wants something else."""
    if _is_text(schema):
        return text
    value = loaded(text)
    is_json = value is not None or text.strip() == "null"
    return value if is_json and not _is_rather_text(value, text, schema) else text


def _is_rather_text(value: Any, text: str, schema: Any) -> bool:
    """Whether a schema, as one of a text or null, takes what was written, and not as JSON."""
    return not _takes(schema, value) and _takes(schema, text)


def _takes(schema: Any, value: Any, depth: int = 8) -> bool:
    """Whether a schema's types and listed values allow a value. Callers may have written anything;
    what else they say, and what they say deep inside, refuses none."""
    if not isinstance(schema, dict) or not depth:
        return True
    given = schema.get("type")
    kinds = given if isinstance(given, list) else [given] if isinstance(given, str) else []
    if kinds and not any(_is_of_kind(value, kind) for kind in kinds):
        return False
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list) and not any(_is_same(value, one) for one in listed):
        return False
    for key, needed in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        branches = schema.get(key)
        if not isinstance(branches, list) or not branches:
            continue
        if not needed(_takes(branch, value, depth - 1) for branch in branches):
            return False
    return True


def _is_of_kind(value: Any, kind: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    types = _KINDS.get(kind) if isinstance(kind, str) else None
    return types is None or isinstance(value, types)


_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _read_llama(raw: str, offered: Properties) -> list[Call]:
    """{"name": …, "parameters": {…}}, several parted by semicolons. The name has to be a tool's."""
    calls: list[Call] = []
    rest = raw.strip()
    while rest:
        try:
            value, end = DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            return []
        found = _read_object(value)
        if not found or found[0].name not in offered:
            return []
        calls += found
        rest = rest[end:].lstrip()
        if rest and not rest.startswith(";"):
            return []
        rest = rest.removeprefix(";").lstrip()
    return calls


def _read_mistral(raw: str, offered: Properties) -> list[Call]:
    """name[ARGS]{…}, or a JSON list of calls (before version 11 of its tokenizer)."""
    if named := _NAMED.fullmatch(raw.strip()):
        return _call(named["name"], loaded(named["arguments"]))
    value = loaded(raw)
    values = value if isinstance(value, list) else [value]
    calls = [_read_object(v) for v in values]
    return [call for found in calls for call in found] if all(calls) else []


_NAMED = re.compile(
    r"(?P<name>[\w.-]+)(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\])?\s*(?P<arguments>\{.*\})", re.DOTALL
)


def _read_deepseek(raw: str, offered: Properties) -> list[Call]:
    """name<｜tool▁sep｜>{…} (V3.1), or function<｜tool▁sep｜>name and fenced JSON (V3, R1)."""
    head, _, rest = raw.partition("<｜tool▁sep｜>")
    if fenced := re.fullmatch(r"\s*([^\s`][^\n`]*)\n```json\n(.*)\n```\s*", rest, re.DOTALL):
        return _call(fenced[1].strip(), loaded(fenced[2]))
    return _call(head.strip(), loaded(rest))


def _read_harmony(raw: str, offered: Properties) -> list[Call]:
    """name, a channel and a constraint perhaps, <|message|>{…}."""
    head, _, arguments = raw.partition("<|message|>")
    name = re.match(r"[\w.-]+", head)
    return _call(name[0], loaded(arguments)) if name else []


# --- families --------------------------------------------------------------------------------

PLAIN = Family(
    {
        "defaults": {"role": "assistant"},
        "start_anchor": ["\x00"],  # required, and never in a prompt: nothing of it is the answer's
        "fields": {"content": {"content": "text"}},
    }
)
HERMES = Family(
    _template(
        ["<|im_start|>assistant\n"],
        _between(CALL_OPEN, CALL_CLOSE),
        reasoning=_between(THINK_OPEN, THINK_CLOSE),
    ),
    CALL_OPEN,
    CALL_CLOSE,
    _read_hermes,
)
LLAMA = Family(
    _template(
        ["<|start_header_id|>assistant<|end_header_id|>\n\n"],
        {
            "open_pattern": r'^\s*(?:<\|python_tag\|>)?(?=\{\s*"(?:type|name)")',
            "close": ["<|eot_id|>", "<|eom_id|>"],
        },
    ),
    read=_read_llama,
)
MISTRAL = Family(
    _template(
        ["[/INST]", "[/TOOL_RESULTS]"],
        {"open": "[TOOL_CALLS]", "close_pattern": r"(?=\[TOOL_CALLS\])|</s>"},
        reasoning=_between("[THINK]", "[/THINK]"),
    ),
    "[TOOL_CALLS]",
    "",
    _read_mistral,
)
DEEPSEEK = Family(
    _template(
        ["<｜Assistant｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁end｜>"],
        {"open": "<｜tool▁call▁begin｜>", "close": "<｜tool▁call▁end｜>"},
        reasoning=_between(THINK_OPEN, THINK_CLOSE),
        wrapper={  # around all calls; nobody needs to see it
            "open": ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
            "close_pattern": r"(?=[\s\S])",
            "content": "text",
        },
    ),
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    _read_deepseek,
)
_SPEAKER = r"(?:<\|start\|>assistant)?"
HARMONY = Family(
    _template(
        ["<|start|>assistant"],
        {
            "open_pattern": _SPEAKER
            + r"(?:<\|channel\|>(?:commentary|analysis))? ?to=functions\.(?=[\w.-])",
            "close": "<|call|>",
        },
        reasoning={
            "open_pattern": _SPEAKER
            + r"<\|channel\|>analysis(?: ?<\|constrain\|>\w+)?<\|message\|>",
            "close_pattern": r"<\|end\|>|(?=<\|return\|>|<\|start\|>)",
            "content": "text",
        },
        final={
            "open_pattern": _SPEAKER
            + r"<\|channel\|>(?:final|commentary)(?: ?<\|constrain\|>\w+)?<\|message\|>",
            "close_pattern": r"<\|end\|>|<\|return\|>",
            "content": "text",
        },
    ),
    "to=functions.",
    "",
    _read_harmony,
)
