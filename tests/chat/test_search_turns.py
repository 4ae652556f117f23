"""What the turns of an answer follow that searches in files: none but the first has to call."""

from types import SimpleNamespace
from typing import Any

import pytest

from chat.answer_state import MAX_TURNS, AnswerState
from chat.asking import AnswerRequest, Sampling
from chat.document_tool import DocumentTool
from chat.openai_grammar import grammar_of
from chat.openai_responses import _refuse_who_calls_nothing, _with_grammars
from chat.responses_prompt import as_chat
from chat.responses_schemas import ResponseIn
from inference import InvalidParameter, json_schema_grammar
from inference.call_grammars import form_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
HERMES = "{% for tool in tools %}<tool_call>{{ tool }}</tool_call>{% endfor %}"


async def grammars_of(**fields: Any) -> list[str]:
    """Of the first turn, of one behind it and of the last."""
    body = {
        "model": "m",
        "input": "Hi",
        "tools": [{"type": "file_search", "vector_store_ids": ["v"]}],
    }
    chat = as_chat(ResponseIn.model_validate(body | fields), [])
    tokenizer: Any = SimpleNamespace(
        call_form=form_of(HERMES, {"<tool_call>": 1, "</tool_call>": 2})
    )
    request = AnswerRequest(
        "r", "m", [], "u", sampling=Sampling(grammar=grammar_of(chat, tokenizer))
    )
    found: Any = SimpleNamespace(request=request, tokenizer=tokenizer)
    tool = await _with_grammars(DocumentTool("search_documents"), chat, found)
    screen: Any = None
    state = AnswerState(AnswerRequest("r", "m", [], "u", document_tool=tool), screen)
    grammars = [request.sampling.grammar]
    for turn_index in (1, MAX_TURNS - 1):
        state.turn_index = turn_index - 1
        state.turn_over()
        grammars.append(state.request.sampling.grammar)
    return grammars


async def test_a_form_is_all_that_the_last_turn_follows() -> None:
    form = {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}
    first, later, last = await grammars_of(text=form)
    assert first == later != last == json_schema_grammar(SCHEMA)


async def test_a_call_is_forced_in_the_first_turn_alone() -> None:
    first, later, last = await grammars_of(tool_choice={"type": "file_search"})
    assert (bool(first), later, last) == (True, "", "")


async def test_one_call_at_a_time_is_none_in_the_last_turn() -> None:
    first, later, last = await grammars_of(parallel_tool_calls=False)
    assert first == later != last == ""


@pytest.mark.parametrize(("template", "can_call"), [(HERMES, True), ("{{ messages }}", False)])
def test_a_model_here_is_told_by_its_template(template: str, can_call: bool) -> None:
    data = {
        "model": "m",
        "input": "Hi",
        "tools": [{"type": "file_search", "vector_store_ids": ["v"]}],
    }
    form = form_of(template, {"<tool_call>": 1, "</tool_call>": 2})
    found: Any = SimpleNamespace(tokenizer=SimpleNamespace(call_form=form))
    chat = as_chat(ResponseIn.model_validate(data), [])
    if can_call:
        _refuse_who_calls_nothing(chat, found)
        return
    with pytest.raises(InvalidParameter, match="calls no tools"):
        _refuse_who_calls_nothing(chat, found)
