"""Under a grammar of tool calls, what a model draws is read back as the calls that were asked for: in
the form of each family of models."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from inference import AnswerParser, Call, InvalidParameter, Reasoning, Segment, Text
from inference.call_grammars import CallForm, form_of
from inference.grammar import Grammars, json_schema_grammar
from inference.tool_grammar import behind_thinking, in_form, opens_thinking, tool_grammar
from tests.inference.drawing import drawn, with_marks

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/city"}, "days": {"enum": [1, 2, 3]}},
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"city": {"type": "string", "maxLength": 12}},
    },
}
LAMP: dict[str, Any] = {
    "name": "lamp",
    "parameters": {
        "properties": {"is_on": {"type": "boolean"}},
        "required": ["is_on"],
        "additionalProperties": False,
    },
}
TOOLS = [{"type": "function", "function": function} for function in (WEATHER, LAMP)]
JSON = json_schema_grammar({"enum": [{"done": True}, {"done": False}]})


@dataclass(frozen=True)
class Model:
    """What its chat template holds, how its prompts end, its marks, an answer with two calls (or with
    one, where no more is written), and what stands once for each call."""

    template: str
    tail: str
    marks: tuple[str, ...]
    answer: str
    sign: str
    calls_alone: bool = False

    @cached_property
    def vocabulary(self) -> tuple[Tokenizer, Grammars]:
        return with_marks(self.marks)

    @property
    def form(self) -> CallForm:
        tokenizer, _ = self.vocabulary
        form = form_of(self.template, {mark: tokenizer.token_to_id(mark) for mark in self.marks})
        assert form is not None
        return form

    def grammar(self, *functions: dict[str, Any], **wanted: Any) -> str:
        return tool_grammar(self.form, functions, **wanted)

    def draw(self, grammar: str, data: st.DataObject) -> bytes:
        return drawn(grammar, data, preferred=(*self.marks, "<|im_end|>"), of=self.vocabulary)

    def read(self, text: bytes, tail: str | None = None) -> list[Segment]:
        parser = AnswerParser(self.template, self.tail if tail is None else tail, TOOLS)
        return parser.feed(text.decode()) + parser.finish()


_WEATHER, _LAMP = '{"city": "Oslo"}', '{"is_on": true}'
_CALLS = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_CALL = ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
_HARMONY = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
MODELS = {
    "hermes": Model(
        "<tool_call> <think>",
        "<|im_start|>assistant\n",
        ("<tool_call>", "</tool_call>", "<think>", "</think>"),
        f'<tool_call>\n{{"name": "get_weather", "arguments": {_WEATHER}}}\n</tool_call>\n'
        f'<tool_call>\n{{"name": "lamp", "arguments": {_LAMP}}}\n</tool_call>',
        "<tool_call>",
    ),
    "qwen3-coder": Model(
        "<tool_call> <function=",
        "<|im_start|>assistant\n",
        ("<tool_call>", "</tool_call>", "<think>", "</think>"),
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
        "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=lamp>\n<parameter=is_on>\ntrue\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>",
    ),
    "llama": Model(
        "<|python_tag|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ("<|python_tag|>",),
        f'{{"name": "get_weather", "parameters": {_WEATHER}}}; '
        f'{{"name": "lamp", "parameters": {_LAMP}}}',
        '"parameters": ',
        calls_alone=True,
    ),
    "mistral": Model(
        "[TOOL_CALLS]",
        "[INST]Hello[/INST]",
        ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
        f"[TOOL_CALLS]get_weather[ARGS]{_WEATHER}[TOOL_CALLS]lamp[CALL_ID]a1b2c3d4e[ARGS]{_LAMP}",
        "[TOOL_CALLS]",
    ),
    "mistral before version 11": Model(
        "[TOOL_CALLS]",
        "[INST]Hello[/INST]",
        ("[TOOL_CALLS]",),
        f'[TOOL_CALLS] [{{"name": "get_weather", "arguments": {_WEATHER}}},'
        f' {{"name": "lamp", "arguments": {_LAMP}}}]',
        '"arguments": ',
    ),
    "deepseek v3.1": Model(
        f"{_CALLS[0]}",
        "<｜Assistant｜>",
        ("<think>", "</think>", *_CALLS, *_CALL),
        f"{_CALLS[0]}{_CALL[0]}get_weather{_CALL[1]}{_WEATHER}{_CALL[2]}"
        f"{_CALL[0]}lamp{_CALL[1]}{_LAMP}{_CALL[2]}{_CALLS[1]}",
        _CALL[0],
    ),
    "deepseek r1": Model(
        f"{_CALLS[0]} ```json",
        "<｜Assistant｜>",
        ("<think>", "</think>", *_CALLS, *_CALL),
        f"{_CALLS[0]}{_CALL[0]}function{_CALL[1]}get_weather\n```json\n{_WEATHER}\n```{_CALL[2]}\n"
        f"{_CALL[0]}function{_CALL[1]}lamp\n```json\n{_LAMP}\n```{_CALL[2]}{_CALLS[1]}",
        _CALL[0],
    ),
    "gpt-oss": Model(
        "<|channel|>",
        "<|start|>assistant",
        ("<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|start|>", "<|call|>"),
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{_HARMONY}{_WEATHER}",
        "to=functions.",
        calls_alone=True,
    ),
}
HERMES = MODELS["hermes"]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param]


def check(call: Call) -> None:
    arguments = json.loads(call.arguments)
    if call.name == "lamp":
        assert list(arguments) == ["is_on"]
        assert isinstance(arguments["is_on"], bool)
        return
    assert call.name == "get_weather"
    assert len(arguments["city"]) <= 12
    assert set(arguments) <= {"city", "days"}
    assert arguments.get("days", 1) in (1, 2, 3)


def test_a_familys_own_calls_follow_its_grammar(model: Model) -> None:
    """As its template has them, token by token."""
    tokenizer, grammars = model.vocabulary
    for is_forced in (True, False):
        state = grammars.start(model.grammar(WEATHER, LAMP, is_forced=is_forced, is_single=False))
        for token_id in tokenizer.encode(model.answer).ids:
            assert state.mask()[token_id], tokenizer.decode([token_id], skip_special_tokens=False)
            state.take(token_id)
    assert [type(s) for s in model.read(model.answer.encode())].count(Call) >= 1


@given(st.data(), st.sampled_from(list(MODELS)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_forced_answer_is_calls_and_nothing_else(
    data: st.DataObject, name: str, is_single: bool
) -> None:
    model = MODELS[name]
    grammar = model.grammar(WEATHER, LAMP, is_forced=True, is_single=is_single)
    segments = model.read(model.draw(grammar, data))
    calls = [segment for segment in segments if isinstance(segment, Call)]
    assert calls
    assert len(calls) == 1 or not is_single
    for call in calls:
        check(call)
    if name != "gpt-oss":  # which thinks first, and may say so
        assert calls == segments


@given(st.data(), st.sampled_from(list(MODELS)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_free_answer_may_call_and_then_calls_well(
    data: st.DataObject, name: str, is_single: bool
) -> None:
    model = MODELS[name]
    grammar = model.grammar(WEATHER, LAMP, is_forced=False, is_single=is_single)
    text = model.draw(grammar, data)
    calls = [s for s in model.read(text) if isinstance(s, Call)]
    assert len(calls) <= 1 or not is_single
    if calls or not model.calls_alone:
        assert len(calls) == text.count(model.sign.encode()), "none of them came as text"
    for call in calls:
        check(call)


@given(st.data(), st.sampled_from(list(MODELS)))
@settings(max_examples=100, deadline=None)
def test_an_answer_in_json_may_be_a_call_instead(data: st.DataObject, name: str) -> None:
    model = MODELS[name]
    grammar = model.grammar(LAMP, is_forced=False, is_single=True, answer=JSON)
    segments = model.read(model.draw(grammar, data))
    last = segments[-1]
    if isinstance(last, Call):
        check(last)
        return
    assert isinstance(last, Text)
    if name != "gpt-oss":
        assert len(segments) == 1
        assert list(json.loads(last.text)) == ["done"]
    else:  # what it has said before is text as well
        assert last.text.rstrip().endswith("}")


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_model_that_speaks_on_channels_gives_an_answer_in_json_on_the_last(
    data: st.DataObject,
) -> None:
    gpt_oss = MODELS["gpt-oss"]
    text = gpt_oss.draw(in_form(gpt_oss.form, JSON), data)
    assert text.count(b"<|channel|>final<|message|>") == 1
    assert list(json.loads(text.rpartition(b"<|message|>")[2])) == ["done"]
    assert not [s for s in gpt_oss.read(text) if isinstance(s, Call)]
    for model in MODELS.values():
        assert (in_form(model.form, JSON) == JSON) == (model is not gpt_oss)


@pytest.mark.parametrize(
    "said", ["<|end|> x", "a<|end|><|start|>assistant<|channel|>analysis<|message|>b", "x" * 9]
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_json_may_speak_of_the_marks_of_channels(said: str, size: int) -> None:
    gpt_oss = MODELS["gpt-oss"]
    mark = gpt_oss.form.answer_mark
    answer = json.dumps({"s": said, "again": mark})
    text = f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{mark}{answer}"
    parser = AnswerParser(gpt_oss.template, gpt_oss.tail, answer_mark=mark)
    found = [s for at in range(0, len(text), size) for s in parser.feed(text[at : at + size])]
    found += parser.finish()
    assert "".join(s.text for s in found if isinstance(s, Text)) == answer
    assert "".join(s.text for s in found if isinstance(s, Reasoning)) == "Hm."


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_thinking_that_the_prompt_has_opened_comes_first(data: st.DataObject) -> None:
    tail = "<|im_start|>assistant\n<think>\n"
    assert opens_thinking(HERMES.template, tail)
    assert not opens_thinking(HERMES.template, f"{tail}</think>\n")
    asked = "what does <think> mean?<|im_end|>\n<|im_start|>assistant\n"
    assert not opens_thinking(HERMES.template, asked), "a person's word opens nothing"
    inner = HERMES.grammar(LAMP, is_forced=False, is_single=True, answer=JSON)
    for grammar in (behind_thinking(inner), behind_thinking(JSON)):
        text = drawn(grammar, data, preferred=("</think>",))
        thought, answer = text.decode().split("</think>")
        [last] = [s for s in HERMES.read(text, tail) if not isinstance(s, Reasoning)]
        assert isinstance(last, Call) or json.loads(answer) == json.loads(last.text)
        assert "<tool_call>" not in thought


def test_the_choice_of_a_token_is_the_grammars_where_it_matters() -> None:
    """Nothing but the opening mark begins a forced call, and no other name follows."""
    tokenizer, grammars = HERMES.vocabulary
    state = grammars.start(HERMES.grammar(LAMP, is_forced=True, is_single=True))
    mask = state.mask()
    assert [i for i, is_allowed in enumerate(mask) if is_allowed] == [
        tokenizer.token_to_id("<tool_call>")
    ]
    text = '<tool_call>\n{"name": "lamp", "arguments": {"is_on": true}}\n</tool_call>'
    for token_id in tokenizer.encode(text).ids:
        assert state.mask()[token_id]
        state.take(token_id)
    assert state.is_complete


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"qwen3-coder"}))
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_an_argument_may_spell_the_marks(name: str, data: st.DataObject) -> None:
    model = MODELS[name]
    pieces = st.lists(st.sampled_from([*model.marks, '"', "\\", "\n", "{", "a"]), max_size=6)
    city = "".join(data.draw(pieces))
    answer = model.answer.replace('"Oslo"', json.dumps(city))
    whole = model.read(answer.encode())
    (first, *_) = calls = [s for s in whole if isinstance(s, Call)]
    assert json.loads(first.arguments) == {"city": city}
    assert len(calls) == sum(isinstance(s, Call) for s in model.read(model.answer.encode()))
    parser = AnswerParser(model.template, model.tail, TOOLS)
    found = [s for character in answer for s in parser.feed(character)] + parser.finish()
    assert [s for s in found if isinstance(s, Call)] == calls


NO_SCHEMAS: list[Any] = [
    {"type": "string"},
    {"type": "object", "properties": {"a": {"type": "any"}}},
    {"type": "object", "properties": None},
    {"properties": {"a": {"type": "array", "uniqueItems": True}}, "required": None},
    {"type": "object", "required": None},
    7,
]


@pytest.mark.parametrize("parameters", NO_SCHEMAS)
def test_parameters_of_a_strict_function_that_are_no_schema_are_refused(parameters: Any) -> None:
    function = {"name": "f", "parameters": parameters, "strict": True}
    with pytest.raises(InvalidParameter, match=r"^tools: f: ") as caught:
        tool_grammar(HERMES.form, [LAMP, function], is_forced=True, is_single=True)
    assert caught.value.param == "tools"


def test_a_schema_that_no_grammar_holds_to_says_where() -> None:
    tags = {"type": "array", "uniqueItems": True}
    function = {"name": "f", "parameters": {"properties": {"tags": tags}}, "strict": True}
    with pytest.raises(InvalidParameter, match="tools: f: `uniqueItems` at #/properties/tags "):
        HERMES.grammar(function, is_forced=False, is_single=True)


@pytest.mark.parametrize("parameters", NO_SCHEMAS)
@pytest.mark.parametrize("name", ["hermes", "qwen3-coder"])
def test_other_functions_with_such_parameters_are_called_with_any_object(
    parameters: Any, name: str
) -> None:
    strict, free = {**LAMP, "strict": True}, {"name": "f", "parameters": parameters}
    model = MODELS[name]
    tokenizer, grammars = model.vocabulary
    grammar = model.grammar(strict, free, is_forced=False, is_single=False)
    call = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
    text = "\n".join([call % ("f", '{"b": [1, {"c": null}]}'), call % ("lamp", '{"is_on": true}')])
    grammars.start(grammar, tokenizer.encode(text).ids)
    with pytest.raises(InvalidParameter, match="does not follow"):
        grammars.start(grammar, tokenizer.encode(call % ("lamp", '{"is_on": 1}')).ids)


def test_parameters_that_cost_too_much_are_refused_of_all_functions_together() -> None:
    steps = (50_000, 60_001)
    functions = [
        {
            "name": f"f{step}",
            "parameters": {"properties": {"a": {"multipleOf": step}}},
            "strict": True,
        }
        for step in steps
    ]
    for one in functions:
        HERMES.grammar(one, is_forced=True, is_single=True)
    with pytest.raises(InvalidParameter, match="multipleOf") as caught:
        HERMES.grammar(*functions, is_forced=True, is_single=True)
    assert caught.value.param == "tools"
    tokenizer, grammars = HERMES.vocabulary
    grammar = HERMES.grammar(
        functions[0], {**functions[1], "strict": False}, is_forced=True, is_single=True
    )
    text = '<tool_call>\n{"name": "f60001", "arguments": {"a": 7}}\n</tool_call>'
    grammars.start(grammar, tokenizer.encode(text).ids)


def test_a_model_without_marks_for_calls_has_no_form() -> None:
    for model in MODELS.values():
        assert form_of("{{ messages }}", {mark: n for n, mark in enumerate(model.marks)}) is None
        if model is not MODELS["llama"]:  # whose calls are bare JSON
            assert form_of(model.template, {"<s>": 0}) is None


def test_a_function_without_parameters_is_called_with_none() -> None:
    tokenizer, grammars = HERMES.vocabulary
    grammar = HERMES.grammar({"name": "now"}, is_forced=True, is_single=True)
    state = grammars.start(grammar)
    text = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    for token_id in tokenizer.encode(text).ids:
        state.take(token_id)
    assert state.is_complete
    junk = tokenizer.encode('<tool_call>\n{"name": "now", "arguments": {"x": 1}}\n</tool_call>')
    with pytest.raises(InvalidParameter, match="does not follow"):
        grammars.start(grammar, junk.ids)


@pytest.mark.parametrize(
    ("name", "spelled"), [("hermes", "Well <tool_call>"), ("mistral", "Well [TOOL_CALLS]")]
)
def test_free_text_does_not_spell_the_marks(name: str, spelled: str) -> None:
    """A call that is spelled in letters would be read as one, and nobody has checked it."""
    tokenizer, grammars = MODELS[name].vocabulary
    grammar = MODELS[name].grammar(LAMP, is_forced=False, is_single=True)
    ids = [i for c in spelled for i in tokenizer.encode(c).ids]
    grammars.start(grammar, ids[:-1])
    with pytest.raises(InvalidParameter, match="does not follow"):
        grammars.start(grammar, ids)


def test_an_answer_of_llama_that_begins_like_a_call_is_one() -> None:
    tokenizer, grammars = MODELS["llama"].vocabulary
    grammar = MODELS["llama"].grammar(LAMP, is_forced=False, is_single=True)
    for text in ('{"name": "x', ' {\n"type": "'):
        with pytest.raises(InvalidParameter, match="does not follow"):
            grammars.start(grammar, tokenizer.encode(text).ids)
    grammars.start(grammar, tokenizer.encode('{"names": ["x"]}').ids)
