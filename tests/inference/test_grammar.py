"""Whatever is drawn under the masks of a grammar follows it; what cannot be compiled says why."""

import json
import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from inference import InvalidParameter
from inference.closed_schema import closed
from inference.grammar import (
    GrammarGaveUp,
    Grammars,
    choice_grammar,
    json_object_grammar,
    json_schema_grammar,
    regex_grammar,
)
from inference.messages import Finished, Tokens
from tests.inference.drawing import EOS, GRAMMARS, TOKENIZER, drawn
from tests.inference.loops import make_loop, request, run

names = st.text(st.sampled_from("abcxyz_é🙂"), min_size=1, max_size=5)
exact = st.integers(-(2**53), 2**53)  # numbers are doubles
whole_numbers: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda low, span: {"type": "integer", "minimum": low, "maximum": low + span},
    st.integers(-999, 999),
    st.integers(0, 500),
)
strings: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda low, span: {"type": "string", "minLength": low, "maxLength": low + span},
    st.integers(0, 4),
    st.integers(0, 6),
)
leaves: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"$ref": "#/$defs/list"}]),
    whole_numbers,
    strings,
    st.sampled_from(["minimum", "exclusiveMinimum"]).map(
        lambda least: {"type": "number", least: -2.5, "exclusiveMaximum": 97.25}
    ),
    st.sampled_from(["^[a-f]{2,4}$", "^(ab|é🙂)+-[0-9]{1,3}$", "x", '^[^"]{0,5}$']).map(
        lambda pattern: {"type": "string", "pattern": pattern, "maxLength": 12}
    ),
    st.lists(st.one_of(names, exact, st.none()), min_size=1, max_size=4).map(
        lambda values: {"enum": values}
    ),
    st.one_of(names, exact, st.booleans()).map(lambda value: {"const": value}),
    st.tuples(whole_numbers, strings).map(lambda both: {"oneOf": list(both)}),
    st.tuples(whole_numbers, st.just(["integer", "null"])).map(
        lambda both: {**both[0], "type": both[1]}
    ),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    properties = draw(st.dictionaries(names, inner, min_size=1, max_size=4))
    is_needed = [draw(st.booleans()) for _ in properties]
    needed = [name for name, needs in zip(properties, is_needed, strict=True) if needs]
    closing = draw(st.sampled_from([{}, {"additionalProperties": False}]))
    return {"type": "object", "properties": properties, "required": needed, **closing}


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    least = draw(st.integers(0, 2))
    items = {"items": draw(inner), "minItems": least, "maxItems": least + 2}
    if draw(st.booleans()):
        items |= {"prefixItems": [draw(inner)]}
    return {"type": "array", **items}


LIST = {
    "type": "object",
    "properties": {
        "value": {"type": "boolean"},
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/list"}]},
    },
    "required": ["value", "next"],
}
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        objects(inner),
        arrays(inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options}),
    ),
    max_leaves=6,
).map(lambda schema: {"$defs": {"list": LIST}, "anyOf": [schema]})


@given(schemas, st.data())
@settings(max_examples=400, deadline=None)
def test_whatever_is_drawn_satisfies_the_schema(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    """By another's validator; and it has nothing that the schema does not name."""
    value = json.loads(drawn(json_schema_grammar(schema), data))
    for own in (schema, closed(schema)):
        validator_for(own).validate(value)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_regular_expressions_and_choices(data: st.DataObject) -> None:
    text = drawn(regex_grammar(r"[A-Z]{2}-[0-9]{1,4}(é|🙂)?"), data).decode()
    assert re.fullmatch(r"[A-Z]{2}-[0-9]{1,4}(é|🙂)?", text)
    assert drawn(choice_grammar(["yes", 'no "never"', "perhaps\n"]), data).decode() in (
        "yes",
        'no "never"',
        "perhaps\n",
    )


@pytest.mark.parametrize(
    "choices",
    [
        [f"option number {n}" for n in range(9000)],
        ["yes please", "yes", ""],
        ["/x/|y", "@a", 'b"\\', "c\nd", "🙂\u2028"],
    ],
    ids=["many", "beginnings of each other", "marks of Lark"],
)
def test_each_choice_may_be_written_as_it_is(choices: list[str]) -> None:
    grammar = choice_grammar(choices)
    for text in choices[-5:]:
        state = GRAMMARS.start(grammar)
        for token_id in TOKENIZER.encode(text).ids:
            assert state.mask()[token_id], text
            state.take(token_id)
        assert state.is_complete or any(state.mask()[eos_id] for eos_id in EOS)


def test_too_many_choices_are_refused_at_once() -> None:
    with pytest.raises(InvalidParameter) as caught:
        choice_grammar([f"{n:x}" for n in range(25_000)])
    assert caught.value.param == "choice"


def test_an_object_is_an_object() -> None:
    state = GRAMMARS.start(json_object_grammar())
    for token_id in TOKENIZER.encode('{"a": [1, {"b": null}]}').ids:
        assert state.mask()[token_id]
        state.take(token_id)
    assert state.is_complete


_A, _B = {"properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "null"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": True, **_A},
        {"type": "object", "additionalProperties": {"type": "null"}, **_A},
        {"type": "object", "required": ["b"], **_A},
        {"type": "object", "properties": {}},
        {"type": "object", "allOf": [_A, _B]},
        {"$defs": {"a": {"type": "object", **_A}}, "$ref": "#/$defs/a", **_B},
        {"type": "object", "anyOf": [{"required": ["b"], **_B}, _A], **_A},
    ],
)
def test_what_a_schema_says_of_others_holds(schema: dict[str, Any]) -> None:
    """`b` is among them."""
    state = GRAMMARS.start(json_schema_grammar(schema))
    for token_id in TOKENIZER.encode('{"b": null').ids:
        assert state.mask()[token_id]
        state.take(token_id)


def test_what_a_schema_does_not_name_is_not_written() -> None:
    inside = {"type": "array", "items": {"$ref": "#/$defs/a"}}
    schema = {
        "type": "object",
        "$defs": {"a": {"type": "object", **_A}},
        "properties": {"b": {"anyOf": [{"type": "null"}, inside]}},
    }
    state = GRAMMARS.start(json_schema_grammar(schema))
    for token_id in TOKENIZER.encode('{"b": [{"').ids:
        state.take(token_id)
    texts = {TOKENIZER.decode([i]) for i, may_come in enumerate(state.mask()) if may_come}
    assert {text[0] for text in texts if text} == {"a"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "format": "uuid4"}, '"any"'),
        ({"properties": {"format": {"format": "path"}, "enum": {"format": "iri"}}}, '{"format": 1'),
        ({"$defs": {"a": {"format": "regex"}}, "anyOf": [{"$ref": "#/$defs/a"}]}, "[]"),
        ({"type": "array", "uniqueItems": False}, "[1, 1]"),
        ({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}, "-9007199254740993"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e30}, "12.5"),
        ({"type": "string", "maxLength": 2**63 - 1}, '"a"'),
        ({"const": {"format": "path", "uniqueItems": False}}, '{"format": "path", "uniqueItems"'),
    ],
)
def test_words_that_hold_no_value_to_anything_are_passed_over(
    schema: dict[str, Any], text: str
) -> None:
    state = GRAMMARS.start(json_schema_grammar(schema))
    for token_id in TOKENIZER.encode(text).ids:
        assert state.mask()[token_id]
        state.take(token_id)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "array", "uniqueItems": True}, "`uniqueItems` at # "),
        ({"properties": {"not": {"not": {"type": "null"}}}}, "`not` at #/properties/not "),
        ({"anyOf": [{"if": {}, "propertyNames": {}}]}, "`if`, `propertyNames` at #/anyOf/0 "),
        ({"$defs": {"a": {"dependentRequired": {}}}, "$ref": "#/$defs/a"}, "#/$defs/a "),
        ({"items": {"contains": {}, "type": "array"}}, "`contains` at #/items "),
    ],
)
def test_words_that_no_grammar_holds_to_are_named_with_their_place(
    schema: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        json_schema_grammar(schema)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"type": "object", "required": 3, "properties": {"a": 5}},
        {"$ref": "#/nowhere"},
        {"type": "string", "pattern": "(?=x)"},
        {"type": "integer", "minimum": 5, "maximum": 1},
        {"enum": ["x" * 1000] * 1000},
        {"type": "object", "unevaluatedProperties": 3},
        {"enum": []},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
    ],
)
def test_what_cannot_be_compiled_says_why(schema: dict[str, Any]) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidParameter) as caught:
        GRAMMARS.start(json_schema_grammar(schema))
    assert caught.value.param in ("response_format", "grammar")
    assert time.monotonic() - started < 5


def _doubling(times: int) -> dict[str, Any]:
    """Each definition is two of the one before: 2 to that power of objects when written out."""
    definitions: dict[str, Any] = {"d0": {"type": "string", "maxLength": 3}}
    for n in range(1, times + 1):
        both = {"$ref": f"#/$defs/d{n - 1}"}
        definitions[f"d{n}"] = {
            "type": "object",
            "properties": {"a": both, "b": both},
            "required": ["a", "b"],
        }
    return {"$ref": f"#/$defs/d{times}", "$defs": definitions}


@pytest.mark.parametrize(
    ("schema", "text", "gives_up"),
    [
        (_doubling(40), '{"a": ' * 40 + '"xyz", "b": "', False),
        ({"type": "string", "pattern": "^" + "(a|aa)*" * 50 + "b$"}, '"' + "a" * 500, False),
        ({"type": "string", "pattern": "^(a{1000}){1000}$"}, '"' + "a" * 500, True),
        ({"type": "string", "pattern": "^(.{0,500}x){40}$"}, '"' + "ax" * 250, True),
    ],
)
def test_bombs_are_not_written_out(schema: dict[str, Any], text: str, gives_up: bool) -> None:
    """They are followed, or given up for want of fuel: nobody waits."""
    began_s = time.monotonic()
    state = GRAMMARS.start(json_schema_grammar(schema))
    with pytest.raises(GrammarGaveUp) if gives_up else nullcontext():
        for token_id in TOKENIZER.encode(text).ids:
            assert state.mask()[token_id]
            state.take(token_id)
    assert time.monotonic() - began_s < 5


_CHAINED = {
    "$defs": {"a": {"type": "integer", "multipleOf": 313}},
    "allOf": [{"$ref": "#/$defs/a"}, {"multipleOf": 319}],
}
_BESIDE = {"$defs": _CHAINED["$defs"], "$ref": "#/$defs/a", "multipleOf": 319}
_MANY_LENGTHS = [{"type": "array", "maxItems": 10**6 + i} for i in range(500)]
_MANY_RANGES = [{"type": "integer", "minimum": i, "maximum": 10**15 + i} for i in range(2000)]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "multipleOf": 100_000_007},
        {"type": "integer", "multipleOf": 0.99991},
        {"type": "number", "multipleOf": 1e300},
        _CHAINED,
        _BESIDE,
        {"type": "object", "properties": {f"p{i}": {} for i in range(7000)}},
        {"type": "array", "prefixItems": _MANY_LENGTHS},
        {"type": "array", "prefixItems": _MANY_RANGES},
    ],
)
def test_what_takes_long_to_compile_is_refused(schema: dict[str, Any]) -> None:
    """Before it comes to a worker, whose other answers would wait, or die with it."""
    began_s = time.monotonic()
    with pytest.raises(InvalidParameter) as caught:
        json_schema_grammar(schema)
    assert caught.value.param == "response_format"
    assert time.monotonic() - began_s < 5


def test_steps_that_people_write_are_not_refused() -> None:
    steps = (5, 0.01, 0.25, 7, 15, 64, 97, 1000, 1440, 86_400)
    each = {f"p{n}": {"type": "number", "multipleOf": step} for n, step in enumerate(steps)}
    GRAMMARS.start(json_schema_grammar({"type": "object", "properties": each}))


@pytest.mark.parametrize("vocab_size", [TOKENIZER.get_vocab_size() - 50, 5000])
def test_models_without_an_end_of_turn_and_with_other_vocabularies(vocab_size: int) -> None:
    grammars = Grammars(TOKENIZER, eos_ids=[], vocab_size=vocab_size)
    state = grammars.start(choice_grammar(["yes"]))
    for token_id in TOKENIZER.encode("yes").ids:
        mask = state.mask()
        assert len(mask) == vocab_size
        assert mask[token_id]
        state.take(token_id)
    assert state.is_complete


def test_an_answer_that_does_not_follow_its_grammar_is_not_taken_up() -> None:
    with pytest.raises(InvalidParameter, match="does not follow"):
        GRAMMARS.start(json_object_grammar(), TOKENIZER.encode("hello").ids)


@given(st.integers(0, 12), st.data())
@settings(max_examples=40, deadline=None)
def test_masks_along_a_draft_are_those_of_the_text_with_it(
    num_written: int, data: st.DataObject
) -> None:
    grammar = regex_grammar("[a-z]{2,5}( [0-9]{1,3}){0,4}")
    ids = TOKENIZER.encode(drawn(grammar, data).decode()).ids
    num_written = min(num_written, len(ids) - 1)
    written, draft = ids[:num_written], ids[num_written:]
    if data.draw(st.booleans()):  # a draft may leave the grammar
        draft.insert(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 300)))
    state = GRAMMARS.start(grammar, written)
    masks = state.masks_along(draft)
    assert 1 <= len(masks) <= len(draft) + 1
    assert masks == state.masks_along(draft), "looking ahead changes nothing"
    for i, mask in enumerate(masks):
        assert mask == GRAMMARS.start(grammar, [*written, *draft[:i]]).mask()
    if len(masks) <= len(draft) and masks[-1][draft[len(masks) - 1]]:  # taken, and it is the end
        assert GRAMMARS.start(grammar, [*written, *draft[: len(masks)]]).is_complete


@pytest.mark.parametrize(
    "grammar", [regex_grammar("[0-9]+"), json_schema_grammar({"type": "integer"})]
)
def test_an_end_of_turn_is_no_part_of_what_follows_a_grammar(
    tiny_model: Path, grammar: str
) -> None:
    """Neither where ends of turn are ignored: the grammar allows one where its text may end."""
    loop = make_loop(tiny_model)
    (eos_id,) = loop.eos_ids
    biases = ((loop.tokenizer.token_to_id("-"), -100.0), (eos_id, 100.0))
    told = run(loop, request("r", (5, 6, 7), grammar=grammar, logit_bias=biases))["r"]
    assert "".join(u.text for u in told if isinstance(u, Tokens)).isdecimal()
    assert isinstance(told[-1], Finished)
    assert told[-1].reason == "stop"


ROUND = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
ENDLESS: list[dict[str, Any]] = [
    {"$ref": "#"},
    {"$defs": ROUND, "$ref": "#/$defs/a"},
    {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(1000)}},
]


@pytest.mark.parametrize("schema", ENDLESS, ids=["itself", "round", "1000 optional"])
def test_a_schema_that_cannot_be_followed_says_so_in_words_of_ours(schema: dict[str, Any]) -> None:
    state = GRAMMARS.start(json_schema_grammar(schema))
    with pytest.raises(GrammarGaveUp, match="leads back to itself, or allows too much"):
        for _ in range(3):
            state.take(next(i for i, is_allowed in enumerate(state.mask()) if is_allowed))
