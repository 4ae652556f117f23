"""Grammars of answers that call tools, in the form of the model's family. Torch-free."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from inference.call_forms import THINK_CLOSE, THINK_OPEN, family_of
from inference.call_grammars import HERMES_MARKS, CallForm, text_rule
from inference.errors import InvalidParameter
from inference.grammar import checked, json_part, json_schema_grammar, nested_parts
from inference.plain_schema import plain
from inference.tagged_calls import tagged_parts

_ANY = {"type": "object", "properties": {}}


def tool_grammar(
    form: CallForm,
    functions: Sequence[dict[str, Any]],
    *,
    is_forced: bool,
    is_single: bool,
    answer: str = "",
) -> str:
    """The grammar of answers that may or (`is_forced`) must call `functions`, once or more often.

    `functions` are OpenAI's: name, parameters, a JSON schema, and `strict`. One that is not strict is
    called with any object where no grammar holds to its schema. What is no call follows the grammar
    `answer`, or is any text. Raises InvalidParameter.
    """
    names = [f["name"] for f in functions]
    compose = partial(
        _grammar, form, names, is_forced=is_forced, is_single=is_single, answer=answer
    )
    with suppress(InvalidParameter):
        return compose([_parameters(f) for f in functions])
    possible = [_possible_parameters(f) for f in functions]
    with suppress(InvalidParameter):
        return compose(possible)
    own = zip(functions, possible, strict=True)
    return compose([schema if f.get("strict") else _ANY for f, schema in own])


def _grammar(
    form: CallForm,
    names: Sequence[str],
    schemas: Sequence[dict[str, Any]],
    *,
    is_forced: bool,
    is_single: bool,
    answer: str,
) -> str:
    """The same for functions of these names and schemas of arguments. Raises InvalidParameter."""
    try:
        form, parts = _with_arguments(form, schemas)
        calls = form.calls(is_single=is_single)
        thinking = form.thinking if form.is_thought_forced else ""
        if is_forced:
            start = f"{thinking} {calls}"
        elif answer:
            parts += nested_parts("answer", answer)
            start = f"{thinking} ({calls} | {form.answer.format('@answer')})"
        else:
            start = f"{form.thinking} {form.free(is_single=is_single)}"
        rules = f"start: {start.strip()}\ncall: {form.call(names)}\n{form.rules()}"
        return checked(json.dumps({"grammars": [{"lark_grammar": rules}, *parts]}), "tools")
    except RecursionError as error:
        raise InvalidParameter("tools", f"the schemas cannot be used: {error}") from None


def _with_arguments(
    form: CallForm, schemas: Sequence[dict[str, Any]]
) -> tuple[CallForm, list[dict[str, Any]]]:
    """How functions with these schemas are called, and the grammars of their arguments."""
    named = {f"arguments{i}": schema for i, schema in enumerate(schemas)}
    if form.in_json is None:
        return form, [json_part(name, schema) for name, schema in named.items()]
    tagged = [tagged_parts(name, schema) for name, schema in named.items()]
    found = [parts for parts in tagged if parts is not None]
    if len(found) < len(tagged):
        return _with_arguments(form.in_json, schemas)
    return form, [part for parts in found for part in parts]


def in_form(form: CallForm | None, answer: str) -> str:
    """The grammar of an answer that calls nothing, as the model's family writes it: one that speaks on
    channels thinks on one of them first."""
    if form is None or not form.is_thought_forced:
        return answer
    start = f"{form.thinking} {form.answer.format('@answer')}"
    parts = nested_parts("answer", answer)
    return json.dumps({"grammars": [{"lark_grammar": f"start: {start}\n{form.rules()}"}, *parts]})


def behind_thinking(grammar: str) -> str:
    """For a prompt that has opened `<think>`: any thinking, then what follows the grammar."""
    rules = f"start: TEXT {THINK_CLOSE} /[ \\n]{{0,4}}/ @thought_out\n{text_rule(HERMES_MARKS)}"
    parts = nested_parts("thought_out", grammar)
    return json.dumps({"grammars": [{"lark_grammar": rules}, *parts]})


def opens_thinking(chat_template: str, prompt_tail: str) -> bool:
    """Whether a prompt that ends so has begun the model's thinking for it."""
    begun = family_of(chat_template, has_tools=False).begun(prompt_tail) or ""
    return begun.rfind(THINK_OPEN) > begun.rfind(THINK_CLOSE)


def _parameters(function: dict[str, Any]) -> dict[str, Any]:
    """The schema of a function's arguments. Raises InvalidParameter where they are no object."""
    schema = function.get("parameters")
    if schema is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise InvalidParameter("tools", f"{function['name']}: parameters have to be an object")
    return {"properties": {}, **plain(schema), "type": "object"}


def _possible_parameters(function: dict[str, Any]) -> dict[str, Any]:
    """The same, or that of any object where no grammar holds to it. Raises InvalidParameter, with the
    function's name, where it is strict."""
    try:
        schema = _parameters(function)
        json_schema_grammar(schema, param=f"tools: {function['name']}")
    except InvalidParameter as error:
        if function.get("strict"):
            raise InvalidParameter("tools", str(error).removeprefix("tools: ")) from None
        return _ANY
    return schema
