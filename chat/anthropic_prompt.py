"""A request of /v1/messages as the chat that it asks about."""

import json
from dataclasses import replace
from typing import Any

from chat.anthropic_schemas import (
    AskedIn,
    ImageBlock,
    MessageIn,
    MessagesIn,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from chat.openai_asking import Asked, asked, chat_of, renamed
from chat.openai_schemas import ChatCompletionIn
from chat.rights import Rights
from inference import InvalidParameter

Message = dict[str, Any]
_FIELDS = {"response_format": "output_config.format", "reasoning_effort": "output_config.effort"}
"""What a chat completion calls a field, and what this body does."""


async def asked_as_chat(rights: Rights, data: MessagesIn, run_id: str) -> Asked:
    """Raises what asked() does."""
    chat = as_chat(
        data,
        max_completion_tokens=data.max_tokens,
        temperature=data.temperature,
        top_p=data.top_p,
        top_k=data.top_k,
        seed=data.seed,
    )
    try:
        found = await asked(rights, chat, run_id)
    except InvalidParameter as error:
        raise renamed(error, _FIELDS) from None
    # Of stop strings there may be more here than in OpenAI's bodies.
    sampling = replace(found.request.sampling, stop=tuple(data.stop_sequences or ()))
    return replace(found, request=replace(found.request, sampling=sampling))


def as_chat(data: AskedIn, **sampling: Any) -> ChatCompletionIn:
    choice = data.tool_choice
    is_single = choice is not None and choice.disable_parallel_tool_use
    return chat_of(
        _FIELDS,
        model=data.model,
        messages=_messages(data),
        tools=[{"type": "function", "function": _function(tool)} for tool in data.tools or []]
        or None,
        tool_choice=_choice(data),
        parallel_tool_calls=False if is_single else None,
        response_format=_format(data),
        reasoning_effort=data.effort,
        **sampling,
    )


def _function(tool: Any) -> dict[str, Any]:
    function: dict[str, Any] = tool.function.model_dump(exclude_none=True)
    return function


def _format(data: AskedIn) -> dict[str, Any] | None:
    wanted = data.output_config.format if data.output_config else None
    if wanted is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": wanted.schema_}}


def _choice(data: AskedIn) -> Any:
    choice = data.tool_choice
    if choice is None:
        return None
    if choice.name is not None:
        return {"type": "function", "function": {"name": choice.name}}
    return {"any": "required"}.get(choice.type, choice.type)


def _messages(data: AskedIn) -> list[Message]:
    messages: list[Message] = []
    if system := data.system_text:
        messages.append({"role": "system", "content": system})
    for message in data.messages:
        messages += _of_user(message) if message.role == "user" else [_of_assistant(message)]
    return messages


def _of_user(message: MessageIn) -> list[Message]:
    """Results of tools are messages of their own, in front of what the user says to them."""
    results = [
        {"role": "tool", "tool_call_id": block.tool_use_id, "content": _result(block)}
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    ]
    said = [block for block in message.blocks if isinstance(block, TextBlock | ImageBlock)]
    if not said and results:
        return results
    return [*results, {"role": "user", "content": _content(said)}]


def _content(blocks: list[TextBlock | ImageBlock]) -> str | list[dict[str, Any]]:
    if not any(isinstance(block, ImageBlock) for block in blocks):
        return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    return [
        {"type": "text", "text": block.text}
        if isinstance(block, TextBlock)
        else {"type": "image_url", "image_url": {"url": block.source.address}}
        for block in blocks
    ]


def _of_assistant(message: MessageIn) -> Message:
    said: Message = {
        "role": "assistant",
        "content": "".join(block.text for block in message.blocks if isinstance(block, TextBlock)),
    }
    calls = [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": json.dumps(block.input)},
        }
        for block in message.blocks
        if isinstance(block, ToolUseBlock)
    ]
    return said | {"tool_calls": calls} if calls else said


def _result(block: ToolResultBlock) -> str:
    if isinstance(block.content, str):
        return block.content
    return "".join(part.text for part in block.content)
