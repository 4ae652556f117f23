"""Calls with effects that wait for a person: some always, all once words of others are in the prompt.

What a document or a tool's result says may be an order to the model, and no classifier finds each of
them. So from then on nothing that changes the world is done without a yes. Known as taint tracking.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chat.answer_state import AnswerState
from chat.asking import Control
from chat.events import ToolCall
from chat.tools import Tool
from chat.tools.base import Heard
from inference import ChatMessage

PATIENCE_S = 600.0
REFUSAL = "error: the user has not allowed this call"
IN_DOUBT = (
    "error: the server was interrupted while this ran. It may have been done, and was not tried again;"
    " say so to the user"
)


def needs_approval(state: AnswerState, tool: Tool | None, call: ToolCall) -> bool:
    if tool is None or not tool.has_side_effects:
        return False
    if tool.always_asks:
        return True
    if tool.is_known is not None:
        return not _is_known(state, tool.is_known, call)
    return is_tainted(state)


def _is_known(state: AnswerState, is_known: Callable[..., bool], call: ToolCall) -> bool:
    """Whether the outside learns nothing from a call that a search or the user has not named before."""
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and is_known(values, _heard(state))


def _heard(state: AnswerState) -> Heard:
    """Of what was brought from elsewhere nothing: others have written it, results among it."""
    request = state.request
    if state.plan is None:
        questions = [one["content"] for one in request.messages if one["role"] == "user"]
        return Heard(tuple(questions), tuple(_results([request.messages, state.said])))
    own = [one for one in state.plan.exchanges if not one.is_brought]
    said = [] if request.begun else state.said  # which then goes on from what was brought
    replies: list[Sequence[ChatMessage]] = [one.reply for one in own]
    return Heard(tuple(one.question for one in own), tuple(_results([*replies, said])))


def may_have_run(state: AnswerState, control: Control, tool: Tool | None, call: ToolCall) -> bool:
    """Whether a call that an interruption has left without a result may have had its effect. Nothing is
    done twice unasked: two mails are worse than none of which the model can tell."""
    if tool is None or not tool.has_side_effects or call.id not in state.in_doubt:
        return False
    return control.has_allowed(call.id) or not needs_approval(state, tool, call)


def is_tainted(state: AnswerState) -> bool:
    """Whether the prompt holds what neither its user nor we have written."""
    exchanges = state.plan.exchanges if state.plan is not None else ()
    if (state.plan is not None and state.plan.is_system_brought) or state.request.begun:
        return True
    # Pictures also where this model does not see them: the last one's answer may repeat their words.
    if any(one.documents or one.images or one.attached or one.is_brought for one in exchanges):
        return True
    tools = {tool.name: tool for tool in state.request.tools}
    # Also of what is left out: its summary may repeat what a tool has brought.
    groups = [state.messages, *(one.reply for one in exchanges)]
    return not all(_is_ours(tools.get(name), content) for name, content in _results(groups))


def _is_ours(tool: Tool | None, content: str) -> bool:
    if tool is None:
        return False
    return tool.is_trusted or (tool.is_ours is not None and tool.is_ours(content))


def _results(groups: Iterable[Sequence[ChatMessage]]) -> Iterator[tuple[str, str]]:
    """Of tools that were called the name and what each has brought; "" for one that nobody called. In
    order, and each call once: chats that were brought from elsewhere may count theirs anew."""
    for messages in groups:
        names: dict[str, str] = {}
        for message in messages:
            names |= {call["id"]: call["name"] for call in _calls(message)}
            if message["role"] == "tool":
                yield names.pop(message.get("tool_call_id", ""), ""), str(message["content"])


def _calls(message: ChatMessage) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    values: Any = message.get("tool_calls") or []
    for value in values:
        found.append({"id": str(value.get("id", "")), "name": str(value["function"]["name"])})
    return found


async def is_allowed(state: AnswerState, control: Control, call: ToolCall) -> bool:
    """What its user says; no, where nobody is there to be asked, or nobody answers."""
    if state.request.source not in ("chat", "temporary"):
        return False
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await control.decision(call.id)
    except TimeoutError:
        return False
