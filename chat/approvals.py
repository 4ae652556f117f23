"""Calls with effects that wait for a person: some always, all once words of others are in the prompt.

What a document or a tool's result says may be an order to the model, and no classifier finds each of
them. So from then on nothing that changes the world is done without a yes. Known as taint tracking.
"""

import asyncio
from typing import Any

from chat.answer_state import AnswerState
from chat.asking import Control
from chat.events import ToolCall
from chat.tools import Tool
from inference import ChatMessage

PATIENCE_S = 600.0
REFUSAL = "error: the user has not allowed this call"
IN_DOUBT = (
    "error: the server was interrupted while this ran. It may have been done, and was not tried again;"
    " say so to the user"
)


def needs_approval(state: AnswerState, tool: Tool | None) -> bool:
    if tool is None or not tool.has_side_effects:
        return False
    return tool.always_asks or is_tainted(state)


def may_have_run(state: AnswerState, control: Control, tool: Tool | None, call: ToolCall) -> bool:
    """Whether a call that an interruption has left without a result may have had its effect. Nothing is
    done twice unasked: two mails are worse than none of which the model can tell."""
    if tool is None or not tool.has_side_effects or call.id not in state.in_doubt:
        return False
    return control.has_allowed(call.id) or not needs_approval(state, tool)


def is_tainted(state: AnswerState) -> bool:
    """Whether the prompt holds what neither its user nor we have written."""
    exchanges = state.plan.exchanges if state.plan is not None else ()
    if any(one.documents or one.images or one.is_brought for one in exchanges):
        return True
    trusted = {tool.name for tool in state.request.tools if tool.is_trusted}
    # Also of what is left out: its summary may repeat what a tool has brought.
    messages = [*state.messages, *(said for one in exchanges for said in one.reply)]
    names = {call["id"]: call["name"] for message in messages for call in _calls(message)}
    results = (message for message in messages if message["role"] == "tool")
    return any(names.get(one.get("tool_call_id", "")) not in trusted for one in results)


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
