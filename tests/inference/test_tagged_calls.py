"""Arguments in tags: what is drawn under their grammar is read back as the schema wants it."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import AnswerParser, Call, InvalidParameter
from inference.call_grammars import form_of
from inference.grammar import Grammars
from inference.tagged_calls import tagged_parts
from inference.tool_grammar import tool_grammar
from tests.inference.drawing import drawn, with_marks

TEMPLATE = "<tool_call> <function="
TAIL = "<|im_start|>assistant\n"
MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
TOKENIZER, GRAMMARS = VOCABULARY = with_marks(MARKS)
DEFINITIONS = {
    "colour": {"type": "string", "enum": ["red", "deep blue"]},
    "size": {"type": "integer", "minimum": 0, "maximum": 9},
    "again": {"$ref": "#/$defs/colour"},
}

texts = st.sampled_from(
    [
        {"type": "string", "maxLength": 9},
        {"type": "string", "minLength": 2, "maxLength": 5},
        {"type": "string", "pattern": "^[a-c]{1,4}$"},
        {"type": "string", "pattern": "x/?y", "maxLength": 8},
        {"type": "string", "pattern": "^(yes|no)$"},
        {"type": "string", "enum": ["a", 'with "quotes"', "two\nlines"]},
        {"type": "string", "const": "12"},
    ]
)
values = st.sampled_from(
    [
        {"type": "integer", "minimum": -5, "maximum": 500},
        {"type": "boolean"},
        {"type": ["string", "null"], "maxLength": 5},
        {"enum": ["1", 1, None, [2]]},
        {"type": "array", "items": {"$ref": "#/$defs/size"}, "maxItems": 3},
        {"type": "object", "properties": {"c": {"$ref": "#/$defs/colour"}}, "required": ["c"]},
        {"$ref": "#/$defs/size"},
        {"$ref": "#/$defs/again", "description": "of the paint"},
    ]
)
properties = st.dictionaries(
    st.sampled_from(["city", "a b", "ünit", "path", "n"]), texts | values, max_size=4
)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    named = draw(properties)
    required = [name for name in named if draw(st.booleans())]
    return {"type": "object", "properties": named, "required": required, "$defs": DEFINITIONS}


def function(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "paint", "parameters": schema}


def grammar(schema: dict[str, Any]) -> str:
    form = form_of(TEMPLATE, {mark: TOKENIZER.token_to_id(mark) for mark in MARKS})
    assert form is not None
    return tool_grammar(form, [function(schema)], is_forced=True, is_single=True)


def read(text: str, schema: dict[str, Any]) -> Call:
    tools = [{"type": "function", "function": function(schema)}]
    parser = AnswerParser(TEMPLATE, TAIL, tools)
    (call,) = parser.feed(text) + parser.finish()
    assert isinstance(call, Call)
    return call


@given(st.data(), schemas())
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_what_the_schema_wants(
    data: st.DataObject, schema: dict[str, Any]
) -> None:
    text = drawn(grammar(schema), data, preferred=MARKS, of=VOCABULARY).decode()
    assert text.startswith("<tool_call>\n<function=paint>\n")
    call = read(text, schema)
    arguments = json.loads(call.arguments)
    jsonschema_rs.validator_for(schema).validate(arguments)
    assert arguments.keys() <= schema["properties"].keys()
    assert text.count("<parameter=") == len(arguments)


PAINT = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "num": {"type": "integer"}},
    "required": ["text"],
}


@given(st.text(max_size=60).filter(lambda text: "\r" not in text))
def test_any_text_can_be_an_argument(said: str) -> None:
    """But for one that spells the tag that ends it, or a mark of the family."""
    text = (
        f"<tool_call>\n<function=paint>\n<parameter=text>\n{said}\n</parameter>\n</function>\n"
        "</tool_call>"
    )
    ids = TOKENIZER.encode(text).ids
    if TOKENIZER.decode(ids, skip_special_tokens=False) == text:  # what its vocabulary can say
        assert follows(grammar(PAINT), ids)
    assert json.loads(read(text, PAINT).arguments) == {"text": said}


@pytest.mark.parametrize("said", ["a</parameter>b", "\n</parameter>\n", "<tool_call>", "x</think>"])
def test_but_for_what_would_be_read_as_its_end(said: str) -> None:
    ids = [
        *TOKENIZER.encode("<tool_call>").ids,
        *TOKENIZER.encode("\n<function=paint>\n<parameter=text>\n").ids,
        *(
            i
            for letter in f"{said}\n</parameter>\n</function>\n"
            for i in TOKENIZER.encode(letter).ids
        ),
        *TOKENIZER.encode("</tool_call>").ids,
    ]
    assert not follows(grammar(PAINT), ids)


def follows(rules: str, ids: list[int], grammars: Grammars = GRAMMARS) -> bool:
    state = grammars.start(rules)
    for token_id in ids:
        if not state.mask()[token_id]:
            return False
        state.take(token_id)
    return state.is_complete


_TEXT = {"type": "string"}
BEYOND_TAGS: list[dict[str, Any]] = [
    {"properties": {"a": {**_TEXT, "format": "date"}}},
    {"properties": {"a": {**_TEXT, "pattern": "^a|b$"}}},
    {"properties": {"a": {**_TEXT, "enum": ["</parameter>"]}}},
    {"properties": {"a>b": _TEXT}},
    {"properties": {"a": _TEXT}, "required": ["b"]},
    {"properties": {"a": _TEXT}, "minProperties": 1, "required": ["a"]},
    {"properties": {"a": _TEXT}, "anyOf": [{"required": ["a"]}]},
]


@pytest.mark.parametrize("schema", BEYOND_TAGS)
def test_what_tags_cannot_say_is_json(schema: dict[str, Any]) -> None:
    schema = {"type": "object", **schema}
    assert tagged_parts("arguments0", schema) is None
    rules = json.loads(grammar(schema))["grammars"][0]["lark_grammar"]
    assert "arguments" in rules
    assert "<function=" not in rules


@pytest.mark.parametrize("text", [{"enum": []}, {"pattern": "(?=a)b"}, {"pattern": "["}])
def test_a_text_that_nothing_can_say_is_left_to_json_to_refuse(text: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {**_TEXT, **text}}, "required": ["a"]}
    assert tagged_parts("arguments0", schema) is None
    with pytest.raises(InvalidParameter):
        grammar(schema)
