"""Grammars of answers that call tools, in the Hermes form that `call_forms.HERMES` reads. Torch-free.

A call is `<tool_call>`, a line of JSON, `</tool_call>`. The marks are tokens of the vocabulary; free
text contains them neither as tokens nor spelled out, so that where a call begins is never in doubt.
Strings inside of JSON may spell them: a call with such an argument is read as text.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from inference.call_forms import CALL_CLOSE, CALL_OPEN, THINK_CLOSE, THINK_OPEN, family_of
from inference.errors import InvalidParameter
from inference.grammar import checked, json_part, nested_parts

_MARKS = "|".join((CALL_OPEN, CALL_CLOSE, THINK_OPEN, THINK_CLOSE)).replace("/", "\\/")
_RULES = f"TEXT: /(?s:.*)/ & ~/(?s:.*)({_MARKS})(?s:.*)/"


def tool_grammar(
    added_tokens: Collection[str],
    functions: Sequence[dict[str, Any]],
    *,
    is_forced: bool,
    is_single: bool,
    answer: str = "",
) -> str:
    """The grammar of answers that may or (`is_forced`) must call `functions`, once or more often.

    `functions` are OpenAI's: name and parameters, a JSON schema. `added_tokens` are those of the
    vocabulary that stand apart. What is no call follows the grammar `answer`, or is any text.
    Raises InvalidParameter.
    """
    if not {CALL_OPEN, CALL_CLOSE} <= set(added_tokens):
        raise InvalidParameter("tool_choice", "the model's vocabulary has no tokens for tool calls")
    parts = [json_part(f"arguments{i}", _parameters(f)) for i, f in enumerate(functions)]
    heads = [json.dumps(f'{{"name": {json.dumps(f["name"])}, "arguments": ') for f in functions]
    one = " | ".join(f'{head} @arguments{i} "}}"' for i, head in enumerate(heads))
    more = "" if is_single else '("\\n" call)*'
    if is_forced:
        start = f"call {more}"
    elif answer:
        parts += nested_parts("answer", answer)
        start = f"call {more} | @answer"
    else:
        start = f"{_thought(added_tokens)} TEXT (call {'' if is_single else 'TEXT'})"
        start += "?" if is_single else "*"
    call = f'call: {CALL_OPEN} "\\n" (one) "\\n" {CALL_CLOSE}'
    rules = f"start: {start}\n{call}\none: {one}\n{_RULES}"
    try:
        return checked(json.dumps({"grammars": [{"lark_grammar": rules}, *parts]}), "tools")
    except RecursionError as error:
        raise InvalidParameter("tools", f"the schemas cannot be used: {error}") from None


def behind_thinking(grammar: str) -> str:
    """For a prompt that has opened `<think>`: any thinking, then what follows the grammar."""
    rules = f"start: TEXT {THINK_CLOSE} /[ \\n]{{0,4}}/ @thought_out\n{_RULES}"
    parts = nested_parts("thought_out", grammar)
    return json.dumps({"grammars": [{"lark_grammar": rules}, *parts]})


def opens_thinking(chat_template: str, prompt_tail: str) -> bool:
    """Whether a prompt that ends so has begun the model's thinking for it."""
    begun = family_of(chat_template, has_tools=False).begun(prompt_tail) or ""
    return begun.rfind(THINK_OPEN) > begun.rfind(THINK_CLOSE)


def _thought(added_tokens: Collection[str]) -> str:
    if not {THINK_OPEN, THINK_CLOSE} <= set(added_tokens):
        return ""
    return f"({THINK_OPEN} TEXT {THINK_CLOSE})?"


def _parameters(function: dict[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters")
    if schema is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise InvalidParameter("tools", f"{function['name']}: parameters have to be an object")
    return {"properties": {}, **schema, "type": "object"}
