"""Calls with effects that wait for a person, once words of others are in the prompt.

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


def needs_approval(state: AnswerState, tool: Tool | None) -> bool:
    return tool is not None and tool.has_side_effects and is_tainted(state)


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
