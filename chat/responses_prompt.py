"""A request of /v1/responses as the chat that it asks about."""

import json
from itertools import chain, count
from typing import Any

from pydantic import TypeAdapter

from chat import document_tool
from chat.api_errors import ApiError
from chat.document_prompt import numbered_row
from chat.openai_asking import chat_of
from chat.openai_schemas import ChatCompletionIn
from chat.responses_schemas import (
    CallItem,
    CallOutputItem,
    FileResultIn,
    FileSearchItem,
    HostedToolIn,
    Item,
    MessageItem,
    ResponseIn,
    ToolNameIn,
)

_NOT_SHOWN = "(What was found is not shown any more. Search again.)"
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
        messages=_messages(data, items),
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


def shown_passages(items: list[Any]) -> list[FileResultIn]:
    """What earlier searches have found, where the caller tells that. Each is cited by its place."""
    searches = [item for item in items if isinstance(item, FileSearchItem)]
    return [one for item in searches for one in item.results or ()]


def _messages(data: ResponseIn, items: list[Any]) -> list[Message]:
    """Instructions in front, one with the system's message that follows: most templates take no
    second one."""
    chat = _Chat()
    if data.instructions:
        chat.add_text("system", data.instructions)
    called: set[str] = set()
    searching, num_passages = search_name(data), 0
    for item in items:
        match item:
            case MessageItem():
                role = "system" if item.role == "developer" else item.role
                chat.add_text(role, item.as_parts if item.image_urls else item.text)
            case FileSearchItem():
                _add_search(chat, item, searching, first_number=1 + num_passages)
                num_passages += len(item.results or ())
            case CallItem():
                called.add(item.call_id)
                chat.add_call(item.call_id, item.name, item.arguments)
            case CallOutputItem():
                if item.call_id not in called:
                    problem = f"input: no function_call has the call_id '{item.call_id}'."
                    raise ApiError(400, "invalid_value", problem, "input")
                chat.add_result(item.call_id, item.text)
    if not any(message["role"] != "system" for message in chat.messages):
        raise ApiError(400, "invalid_value", "input: there is nothing to answer.", "input")
    return chat.messages


class _Chat:
    """Messages as items make them. Calls that were made together are one message, with all of their
    results behind it, as servers want it; a search has its own while a function's is still to come."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calling: Message | None = None
        self._unanswered: set[str] = set()

    def add_text(self, role: str, content: Any) -> None:
        self._calling = None
        last = self.messages[-1] if self.messages else None
        if role == "system" and last is not None and last["role"] == "system":
            last["content"] += f"\n\n{content}"
        else:
            self.messages.append({"role": role, "content": content})

    def add_call(self, id_: str, name: str, arguments: str) -> None:
        function = {"name": name, "arguments": arguments}
        call = {"id": id_, "type": "function", "function": function}
        self._caller().setdefault("tool_calls", []).append(call)
        self._unanswered.add(id_)

    def _caller(self) -> Message:
        last = self.messages[-1] if self.messages else None
        if last is not None and last["role"] == "assistant":
            return last if last is self._calling else self._begin(last)
        if self._calling is not None and self._unanswered:
            return self._calling
        self.messages.append({"role": "assistant", "content": ""})
        return self._begin(self.messages[-1])

    def add_result(self, id_: str, content: str) -> None:
        self._unanswered.discard(id_)
        self.messages.append({"role": "tool", "tool_call_id": id_, "content": content})

    def _begin(self, calling: Message) -> Message:
        self._calling = calling
        self._unanswered.clear()
        return calling


def _add_search(chat: _Chat, item: FileSearchItem, name: str, first_number: int) -> None:
    """As a call, and what it brought, where that is known: a model that does not see that it has
    searched does not search again."""
    arguments = json.dumps({"query": " ".join(item.queries)}, ensure_ascii=False)
    numbered = enumerate(item.results or (), first_number)
    rows = [numbered_row(n, one.filename or "", one.text or "") for n, one in numbered]
    content = "\n\n".join(rows) or (_NOT_SHOWN if item.results is None else document_tool.NOTHING)
    chat.add_call(item.id, name, arguments)
    chat.add_result(item.id, content)


def search_name(data: ResponseIn) -> str:
    """What the model knows the search in files by: no function of the caller's has the name."""
    taken = {tool.name for tool in data.functions}
    names = chain(document_tool.NAMES, map("search_{}".format, count()))
    return next(name for name in names if name not in taken)


def _tools(data: ResponseIn) -> list[dict[str, Any]] | None:
    if not data.tools:
        return None
    functions = [tool.model_dump(exclude_unset=True, exclude={"type"}) for tool in data.functions]
    if data.file_search is not None:
        functions.append(document_tool.function(search_name(data)))
    return [{"type": "function", "function": function} for function in functions]


def _choice(data: ResponseIn) -> Any:
    match data.tool_choice:
        case ToolNameIn(name=name):
            return {"type": "function", "function": {"name": name}}
        case HostedToolIn() if data.file_search is None:
            raise ApiError(
                400, "invalid_value", "tool_choice: no tool is file_search.", "tool_choice"
            )
        case HostedToolIn():
            return {"type": "function", "function": {"name": search_name(data)}}
        case choice:
            return choice


def _format(data: ResponseIn) -> dict[str, Any] | None:
    format_ = data.text.format if data.text else None
    return {"type": format_.type, "json_schema": format_.wanted} if format_ else None
