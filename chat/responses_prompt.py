"""A request of /v1/responses as the chat that it asks about."""

from typing import Any

from pydantic import TypeAdapter

from chat.api_errors import ApiError
from chat.openai_asking import chat_of
from chat.openai_schemas import ChatCompletionIn
from chat.responses_schemas import CallItem, CallOutputItem, Item, MessageItem, ResponseIn

_ITEMS = TypeAdapter(list[Item])
Message = dict[str, Any]

FIELDS = {
    "messages": "input",
    "response_format": "text.format",
    "logprobs": "include",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
"""What a chat completion calls a field, and what this body does."""


def as_chat(data: ResponseIn, earlier: list[dict[str, Any]]) -> ChatCompletionIn:
    """`earlier` are the items of the responses that this one goes on from. Raises ApiError."""
    items = [*as_items(earlier), *data.items]
    return chat_of(
        FIELDS,
        model=data.model,
        messages=_messages(data.instructions, items),
        max_completion_tokens=data.max_output_tokens,
        temperature=data.temperature,
        top_p=data.top_p,
        top_k=data.top_k,
        min_p=data.min_p,
        seed=data.seed,
        logprobs=data.wants_logprobs or None,
        top_logprobs=data.top_logprobs if data.wants_logprobs else None,
        tools=_tools(data),
        tool_choice=_choice(data),
        parallel_tool_calls=data.parallel_tool_calls,
        response_format=_format(data),
        reasoning_effort=data.effort,
        verbosity=data.verbosity,
    )


def as_items(values: list[dict[str, Any]]) -> list[Any]:
    """Of what is kept."""
    return _ITEMS.validate_python(values)


def _messages(instructions: str | None, items: list[Any]) -> list[Message]:
    """Instructions in front, one with the system's message that follows: most templates take no
    second one. Calls that were made together are one message."""
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    called: set[str] = set()
    for item in items:
        match item:
            case MessageItem():
                _add_message(messages, item)
            case CallItem():
                called.add(item.call_id)
                _add_call(messages, item)
            case CallOutputItem():
                if item.call_id not in called:
                    problem = f"input: no function_call has the call_id '{item.call_id}'."
                    raise ApiError(400, "invalid_value", problem, "input")
                messages.append(
                    {"role": "tool", "tool_call_id": item.call_id, "content": item.text}
                )
    if not any(message["role"] != "system" for message in messages):
        raise ApiError(400, "invalid_value", "input: there is nothing to answer.", "input")
    return messages


def _add_message(messages: list[Message], item: MessageItem) -> None:
    role = "system" if item.role == "developer" else item.role
    last = messages[-1] if messages else None
    if role == "system" and last is not None and last["role"] == "system":
        last["content"] += f"\n\n{item.text}"
    else:
        content: Any = item.as_parts if item.image_urls else item.text
        messages.append({"role": role, "content": content})


def _add_call(messages: list[Message], item: CallItem) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    function = {"name": item.name, "arguments": item.arguments}
    call = {"id": item.call_id, "type": "function", "function": function}
    messages[-1].setdefault("tool_calls", []).append(call)


def _tools(data: ResponseIn) -> list[dict[str, Any]] | None:
    if not data.tools:
        return None
    functions = [tool.model_dump(exclude_unset=True, exclude={"type"}) for tool in data.tools]
    return [{"type": "function", "function": function} for function in functions]


def _choice(data: ResponseIn) -> Any:
    choice = data.tool_choice
    if choice is None or isinstance(choice, str):
        return choice
    return {"type": "function", "function": {"name": choice.name}}


def _format(data: ResponseIn) -> dict[str, Any] | None:
    format_ = data.text.format if data.text else None
    return {"type": format_.type, "json_schema": format_.wanted} if format_ else None
