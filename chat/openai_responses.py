"""One call of /v1/responses: an answer as a list of items, kept so that another can go on from it."""

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from chat import responses_store
from chat.api_errors import ApiError
from chat.bills import charged
from chat.db import in_db
from chat.document_tool import DocumentTool
from chat.engine import engine
from chat.events import Event, Failed, Finished, Refused
from chat.image_urls import inlined
from chat.off_loop import off_loop
from chat.openai_asking import Asked, asked, renamed
from chat.openai_grammar import grammar_of
from chat.openai_schemas import ChatCompletionIn
from chat.openai_stream import Begun, Numbered, error_response, opened
from chat.openai_tokenize import count_chat
from chat.orchestrator import answer
from chat.responses_prompt import FIELDS, as_chat, as_items, search_name, shown_passages
from chat.responses_schemas import FileSearchIn, MessageItem, ReferenceItem, ResponseIn
from chat.responses_store import Earlier
from chat.responses_writer import ResponseWriter
from chat.rights import Rights
from chat.streaming import server_sent_events
from chat.vector_store_search import stores_to_search
from inference import InvalidParameter

logger = logging.getLogger(__name__)


async def response_to(rights: Rights, data: ResponseIn) -> "Response":
    """Raises what asked() does, and ApiError."""
    data = await _without_references(rights, data)
    previous = await _earlier(rights, data)
    id_ = responses_store.new_id()
    try:
        data = await _with_images(rights, data)
        chat = as_chat(data, previous.items if previous else [])
        found = await asked(rights, chat, id_)
        if data.file_search is not None:
            _refuse_who_calls_nothing(chat, found)
            tool = await _document_tool(rights, data, data.file_search)
            tool = await _with_grammars(tool, chat, found)
            found = replace(found, request=replace(found.request, document_tool=tool))
        return Response(data, previous, found)
    except InvalidParameter as error:
        raise renamed(error, FIELDS) from None


async def count_input_tokens(rights: Rights, data: ResponseIn) -> dict[str, Any]:
    """Raises EngineError and ApiError."""
    data = await _without_references(rights, data)
    previous = await _earlier(rights, data)
    chat = as_chat(data, previous.items if previous else [])
    num_tokens = await count_chat(rights, chat.model, chat.messages, chat.tool_schemas())
    return {"object": "response.input_tokens", "input_tokens": num_tokens}


async def _without_references(rights: Rights, data: ResponseIn) -> ResponseIn:
    """With the items themselves in their place. Raises ApiError."""
    ids = [item.id for item in data.items if isinstance(item, ReferenceItem)]
    if not ids:
        return data
    found = await in_db(responses_store.items_of)(rights.user, ids)
    referred = dict(zip(ids, as_items([found[id_] for id_ in ids]), strict=True))
    items = [referred[i.id] if isinstance(i, ReferenceItem) else i for i in data.items]
    return data.model_copy(update={"input": items})


async def _with_images(rights: Rights, data: ResponseIn) -> ResponseIn:
    """With the images themselves in the place of their addresses, as they are kept for what goes on from
    this response. Raises InvalidParameter."""
    items = [item for item in data.items if isinstance(item, MessageItem)]
    urls = [url for item in items for url in item.image_urls]
    if not urls or not engine().sees_images(data.model):
        return data  # which is refused
    inline = await inlined(rights.user.pk, urls)
    seen = [i.showing(inline) if isinstance(i, MessageItem) else i for i in data.items]
    return data.model_copy(update={"input": seen})


def _refuse_who_calls_nothing(chat: ChatCompletionIn, found: Asked) -> None:
    """A model that cannot call the search would answer without it, and nobody would know."""
    if not chat.offered_tools:
        return
    if found.tokenizer is None:
        can_call = engine().upstream_spec(chat.model).has_tools
    else:
        can_call = found.tokenizer.call_form is not None
    if not can_call:
        raise InvalidParameter("tools", f"{chat.model} calls no tools, and so searches no files")


async def _document_tool(rights: Rights, data: ResponseIn, asked: FileSearchIn) -> DocumentTool:
    """Raises ApiError, also where the key opens no vector store."""
    if rights.api_key is not None and "knowledge" not in rights.api_key.scopes:
        text = "This key cannot search files: it is not for the scope 'knowledge'."
        raise ApiError(403, "insufficient_scope", text, "tools")
    collections, documents = await in_db(stores_to_search)(rights.user, asked)
    ranking = asked.ranking_options
    return DocumentTool(
        search_name(data),
        collections,
        documents,
        most=asked.max_num_results,
        least_score=ranking.score_threshold if ranking else 0.0,
        num_known=len(shown_passages(data.items)),
    )


async def _with_grammars(tool: DocumentTool, chat: ChatCompletionIn, found: Asked) -> DocumentTool:
    """Of turns behind the first."""
    later = found.request.sampling.grammar
    if found.tokenizer is None or not later:
        return tool
    if chat.forces_a_call:
        free = chat.model_copy(update={"tool_choice": None})
        later = await off_loop(grammar_of, free, found.tokenizer)
    silent = chat.model_copy(update={"tool_choice": "none"})
    last = await off_loop(grammar_of, silent, found.tokenizer)
    return replace(tool, later_grammar=later, last_grammar=last)


async def _earlier(rights: Rights, data: ResponseIn) -> Earlier | None:
    """What to go on from. Raises ApiError."""
    if data.previous_response_id is None:
        return None
    return await in_db(responses_store.earlier)(rights.user, data.previous_response_id)


class Response:
    def __init__(self, data: ResponseIn, previous: Earlier | None, asked: Asked) -> None:
        self.rights = asked.rights
        self.data = data
        self.previous = previous
        self.request = asked.request
        tool = asked.request.document_tool
        self.writer = ResponseWriter(
            data,
            asked.request.run_id,
            asked.tokenizer,
            search_name=tool.name if tool else "",
            passages=shown_passages(data.items),
        )

    async def whole(self) -> HttpResponse:
        async with aclosing(self._events()) as events:
            async for _, event in events:
                if isinstance(event, Failed | Refused):
                    return error_response(event, prompt="input")
                _take(self.writer.hear(event))
        await self._keep()
        return JsonResponse(self.writer.body)

    async def streamed(self) -> HttpResponseBase:
        begun, error = await opened(self._events())
        if error is not None:
            return error_response(error, prompt="input")
        return server_sent_events(self._frames(begun))

    async def _frames(self, begun: Begun) -> AsyncGenerator[str, None]:
        """The last frame tells that the response has ended; by then it can be gone on from."""
        async with aclosing(begun) as events:
            for frame in self.writer.begin():
                yield frame
            async for event in _to_its_end(events):
                frames = list(self.writer.hear(event))
                if isinstance(event, Finished | Failed | Refused):
                    frames = await self._kept(frames)
                for frame in frames:
                    yield frame

    async def _kept(self, frames: list[str]) -> list[str]:
        """The last frames, which tell of a failure where the response could not be kept."""
        try:
            await self._keep()
        except Exception:
            logger.exception("a response could not be kept")
            return [*frames[:-1], self.writer.fail_to_keep()]
        return frames

    def _events(self) -> AsyncGenerator[Numbered, None]:
        return charged(self.rights, self.request.model, [answer(self.request)])

    async def _keep(self) -> None:
        if self.data.is_kept:
            save = in_db(responses_store.save)
            await save(self.rights.user, self.writer.body, self.data.items, self.previous)


async def _to_its_end(events: Begun) -> AsyncGenerator[Event, None]:
    """Where the database is away when something is to be searched, a stream still ends with a word."""
    try:
        async for _, event in events:
            yield event
    except (DatabaseError, InterfaceError):
        logger.exception("the database was away in the middle of a response")
        yield Failed("internal_error", "The database could not be asked.")


def _take(frames: Iterable[str]) -> None:
    """A body that is told whole is built up by the frames that nobody sees."""
    for _ in frames:
        pass


async def stored(user: Any, id_: str) -> dict[str, Any]:
    body: dict[str, Any] = (await in_db(responses_store.find)(user, id_)).body
    return body


async def delete(user: Any, id_: str) -> dict[str, Any]:
    await in_db(responses_store.delete)(user, id_)
    return {"id": id_, "object": "response", "deleted": True}


async def input_items(
    user: Any, id_: str, *, limit: int, is_newest_first: bool, after: str
) -> dict[str, Any]:
    """The items of a response's own input, a page of them."""
    row = await in_db(responses_store.find)(user, id_)
    items = list(reversed(row.input)) if is_newest_first else row.input
    ids = [item["id"] for item in items]
    start = ids.index(after) + 1 if after in ids else 0
    page = items[start : start + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": start + limit < len(items),
    }
