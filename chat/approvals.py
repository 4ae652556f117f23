"""Calls with effects that wait for a person: some always, all once words of others are in the prompt.

What a document or a tool's result says may be an order to the model, and no classifier finds each of
them. So from then on nothing that changes the world is done without a yes. Known as taint tracking.
"""

import asyncio
import json
from collections.abc import Iterator
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
    return tool.always_asks or (is_tainted(state) and not _is_known(state, tool, call))


def _is_known(state: AnswerState, tool: Tool, call: ToolCall) -> bool:
    """Whether the outside learns nothing from a call that it or the user has not named before."""
    if tool.is_known is None:
        return False
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and tool.is_known(values, _heard(state))


def _heard(state: AnswerState) -> Heard:
    """Of questions only those that nobody else has written."""
    exchanges = state.plan.exchanges if state.plan is not None else ()
    messages = [] if state.plan is not None else state.request.messages
    questions = [one.question for one in exchanges if not one.is_brought]
    questions += [one["content"] for one in messages if one["role"] == "user"]
    return Heard(tuple(questions), tuple(_results(state)))


def may_have_run(state: AnswerState, control: Control, tool: Tool | None, call: ToolCall) -> bool:
    """Whether a call that an interruption has left without a result may have had its effect. Nothing is
    done twice unasked: two mails are worse than none of which the model can tell."""
    if tool is None or not tool.has_side_effects or call.id not in state.in_doubt:
        return False
    return control.has_allowed(call.id) or not needs_approval(state, tool, call)


def is_tainted(state: AnswerState) -> bool:
    """Whether the prompt holds what neither its user nor we have written."""
    exchanges = state.plan.exchanges if state.plan is not None else ()
    if any(one.documents or one.images or one.is_brought for one in exchanges):
        return True
    trusted = {tool.name for tool in state.request.tools if tool.is_trusted}
    return any(name not in trusted for name, _ in _results(state))


def _results(state: AnswerState) -> Iterator[tuple[str, str]]:
    """Of tools that were called the name and what each has brought; "" for one that nobody called. In
    order: a chat that was brought from elsewhere may count its calls anew in each turn."""
    exchanges = state.plan.exchanges if state.plan is not None else ()
    # Also of what is left out: its summary may repeat what a tool has brought.
    messages = [*state.messages, *(said for one in exchanges for said in one.reply)]
    names: dict[str, str] = {}
    for message in messages:
        names |= {call["id"]: call["name"] for call in _calls(message)}
        if message["role"] == "tool":
            yield names.get(message.get("tool_call_id", ""), ""), str(message["content"])


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
