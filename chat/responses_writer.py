"""The events of an answer as those of /v1/responses, which build up the response's output items.

Source: OpenAI's published API description, version 2.3.0.
"""

import re
from collections.abc import Iterable, Iterator
from time import time
from typing import Any

from chat.api_errors import status_of
from chat.events import Delta, Event, Failed, Finished, Refused, Searched, ToolCall
from chat.openai_bodies import token_bodies
from chat.openai_usage import Tally
from chat.responses_schemas import (
    FileResultIn,
    FileSearchIn,
    FunctionToolIn,
    HostedToolIn,
    ResponseIn,
    ToolNameIn,
)
from chat.responses_store import new_item_id
from chat.storable import storable_value
from chat.wire import dumps
from inference import ChatTokenizer, TokenLogprob

Value = dict[str, Any]
_PARTS = {"text": ("message", "output_text"), "reasoning": ("reasoning", "reasoning_text")}

_MARK = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)  # of JSON
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponseWriter:
    """`body` is the response as it stands; each frame has the next sequence number. `passages` are those
    that the caller has shown the model."""

    def __init__(
        self,
        data: ResponseIn,
        id_: str,
        tokenizer: ChatTokenizer | None,
        *,
        search_name: str = "",
        passages: Iterable[FileResultIn] = (),
    ) -> None:
        self.body: Value = storable_value(_body(data, id_))  # half a character breaks a stream
        self.tally = Tally()
        self._tokenizer = tokenizer if data.wants_logprobs else None
        self._num_frames = 0
        self._open: str | None = None  # the kind of part that is being written
        self._prefixes = {"message": "msg", "reasoning": "rs"}
        self._search_name = search_name  # a call of it is our own to answer
        self._functions = {tool.name for tool in data.functions}
        self._wants_results = data.wants_results
        self._is_json = self.body["text"]["format"]["type"] != "text"
        self._searches: dict[str, int] = {}  # calls that are under way, and where their items stand
        self._passages: dict[int, Value] = {
            number: one.model_dump(include={"file_id", "filename"})
            for number, one in enumerate(passages, 1)
            if one.file_id and one.filename
        }

    @property
    def output(self) -> list[Value]:
        items: list[Value] = self.body["output"]
        return items

    def begin(self) -> Iterator[str]:
        yield self._frame("response.created", response=self.body)
        yield self._frame("response.in_progress", response=self.body)

    def hear(self, event: Event) -> Iterator[str]:
        """The frames that an event makes; they have to be taken."""
        self.tally.hear(event)
        match event:
            case Delta(text=text, part=part, logprobs=rated) if text or rated:
                yield from self._write(part, text, rated)
            case ToolCall(name=name) if self._search_name and name == self._search_name:
                yield from self._close()
                yield from self._begin_search(event)
            case Searched():
                yield from self._end_search(event)
            case ToolCall(name=name):
                yield from self._close()
                if not self._search_name or name in self._functions:
                    yield from self._call(event)
            case Finished(reason=reason):
                yield from self._finish(reason)
            case Failed() | Refused():
                if isinstance(event, Refused) and event.removes:
                    self._open = None
                    self._searches.clear()
                    self.output.clear()
                yield from self._leave_searches("failed")
                yield from self._close("incomplete")
                yield self._end("failed", error=_error(event))

    def fail_to_keep(self) -> str:
        """The frame that ends a response in place of the last one, which nobody was told."""
        self._num_frames -= 1
        failed = Failed("internal_error", "The response could not be kept.")
        return self._end("failed", error=_error(failed), completed_at=None)

    # --- parts ------------------------------------------------------------------------------------

    def _write(self, part: str, text: str, rated: tuple[TokenLogprob, ...]) -> Iterator[str]:
        if self._open != part:
            yield from self._close()
            yield from self._open_part(part)
        content = self.output[-1]["content"][-1]
        content["text"] += text
        fields: Value = {"content_index": 0, "delta": text}
        if part == "text":
            fields["logprobs"] = self._rated(rated)
            content["logprobs"] += fields["logprobs"]
        yield self._part_frame(f"response.{content['type']}.delta", **fields)

    def _open_part(self, part: str) -> Iterator[str]:
        kind, content_kind = _PARTS[part]
        self._open = part
        item: Value = {"id": self._item_id(kind), "type": kind, "status": "in_progress"}
        if kind == "message":
            item["role"] = "assistant"
            content: Value = {"type": content_kind, "text": "", "annotations": [], "logprobs": []}
        else:
            item["summary"] = []
            content = {"type": content_kind, "text": ""}
        self.output.append({**item, "content": []})
        yield self._item_frame("response.output_item.added")
        self.output[-1]["content"].append(content)
        yield self._part_frame("response.content_part.added", content_index=0, part=content)

    def _close(self, status: str = "completed") -> Iterator[str]:
        if self._open is None:
            return
        self._open = None
        item = self.output[-1]
        item["status"] = status
        content = item["content"][-1]
        fields: Value = {"content_index": 0, "text": content["text"]}
        if content["type"] == "output_text":
            fields["logprobs"] = content["logprobs"]
            yield from self._annotate(content)
        yield self._part_frame(f"response.{content['type']}.done", **fields)
        yield self._part_frame("response.content_part.done", content_index=0, part=content)
        yield self._item_frame("response.output_item.done")

    def _call(self, call: ToolCall) -> Iterator[str]:
        """The engine tells of a call when it is whole, so all of it is one delta."""
        item = {
            "id": new_item_id("fc", self.body["id"]),
            "type": "function_call",
            "status": "in_progress",
            "call_id": call.id,
            "name": call.name,
            "arguments": "",
        }
        self.output.append(item)
        yield self._item_frame("response.output_item.added")
        item["arguments"] = call.arguments
        kind = "response.function_call_arguments"
        yield self._part_frame(f"{kind}.delta", delta=call.arguments)
        yield self._part_frame(f"{kind}.done", name=call.name, arguments=call.arguments)
        item["status"] = "completed"
        yield self._item_frame("response.output_item.done")

    # --- searches in files ------------------------------------------------------------------------

    def _begin_search(self, call: ToolCall) -> Iterator[str]:
        self._searches[call.id] = len(self.output)
        self.output.append(
            {
                "id": new_item_id("fs", self.body["id"]),
                "type": "file_search_call",
                "status": "in_progress",
                "queries": [],
                "results": None,
            }
        )
        yield self._item_frame("response.output_item.added")
        yield self._part_frame("response.file_search_call.in_progress")
        self.output[-1]["status"] = "searching"
        yield self._part_frame("response.file_search_call.searching")

    def _end_search(self, found: Searched) -> Iterator[str]:
        place = self._searches.pop(found.id)
        item = self.output[place]
        self._passages |= found.results
        item |= {"status": "completed", "queries": [found.query] if found.query else []}
        if self._wants_results:
            item["results"] = list(found.results.values())
        yield self._part_frame("response.file_search_call.completed", place)
        yield self._item_frame("response.output_item.done", place)

    def _leave_searches(self, status: str) -> Iterator[str]:
        """Those that are under way when the answer ends."""
        for place in self._searches.values():
            self.output[place]["status"] = status
            yield self._item_frame("response.output_item.done", place)
        self._searches.clear()

    def _annotate(self, content: Value) -> Iterator[str]:
        """A citation for each mark of a passage that was read; `index` is where the mark stands."""
        for mark in self._marks_in(content["text"]):
            for number in map(int, mark[1].split(",")):
                if (passage := self._passages.get(number)) is None:
                    continue
                names = {name: passage[name] for name in ("file_id", "filename")}
                annotation = {"type": "file_citation", "index": mark.start(), **names}
                content["annotations"].append(annotation)
                yield self._part_frame(
                    "response.output_text.annotation.added",
                    content_index=0,
                    annotation_index=len(content["annotations"]) - 1,
                    annotation=annotation,
                )

    def _marks_in(self, text: str) -> Iterator[re.Match[str]]:
        """A list of numbers in JSON cites nothing."""
        strings = (
            (one.span() for one in _STRING.finditer(text)) if self._is_json else [(0, len(text))]
        )
        return (mark for span in strings for mark in _MARK.finditer(text, *span))

    # --- the end ----------------------------------------------------------------------------------

    def _finish(self, reason: str) -> Iterator[str]:
        is_cut = reason in _CUT
        if not self.output:
            yield from self._open_part("text")
        yield from self._leave_searches("incomplete")
        yield from self._close("incomplete" if is_cut else "completed")
        self.body |= {"usage": _usage(self.tally), "timings": self.tally.timings()}
        if is_cut:
            details = {"reason": _CUT[reason]}
            yield self._end("incomplete", incomplete_details=details)
        else:
            yield self._end("completed", completed_at=int(time()))

    def _end(self, status: str, **fields: Any) -> str:
        self.body |= {"status": status, **fields}
        return self._frame(f"response.{status}", response=self.body)

    # --- frames -----------------------------------------------------------------------------------

    def _part_frame(self, kind: str, place: int | None = None, **fields: Any) -> str:
        """Of the item at `place`, or of the last one."""
        place = len(self.output) - 1 if place is None else place
        return self._frame(kind, item_id=self.output[place]["id"], output_index=place, **fields)

    def _item_frame(self, kind: str, place: int | None = None) -> str:
        place = len(self.output) - 1 if place is None else place
        return self._frame(kind, output_index=place, item=self.output[place])

    def _frame(self, kind: str, **fields: Any) -> str:
        data = {"type": kind, "sequence_number": self._num_frames, **fields}
        self._num_frames += 1
        return f"event: {kind}\ndata: {dumps(data)}\n\n"

    def _item_id(self, kind: str) -> str:
        return new_item_id(self._prefixes[kind], self.body["id"])

    def _rated(self, rated: tuple[TokenLogprob, ...]) -> list[Value]:
        return token_bodies(self._tokenizer, rated) if self._tokenizer else []


def _body(data: ResponseIn, id_: str) -> Value:
    choice = data.tool_choice
    format_ = data.text.format if data.text else None
    told = format_.model_dump(by_alias=True, exclude_none=True) if format_ else {"type": "text"}
    return {
        "id": id_,
        "object": "response",
        "created_at": int(time()),
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": data.instructions,
        "max_output_tokens": data.max_output_tokens,
        "model": data.model,
        "output": [],
        "parallel_tool_calls": data.parallel_tool_calls is not False,
        "previous_response_id": data.previous_response_id,
        "reasoning": {"effort": data.effort, "summary": None},
        "store": data.is_kept,
        "temperature": data.temperature,
        "text": {"format": told} | ({"verbosity": data.verbosity} if data.verbosity else {}),
        "tool_choice": (
            choice.model_dump()
            if isinstance(choice, ToolNameIn | HostedToolIn)
            else choice or "auto"
        ),
        "tools": [_tool(tool) for tool in data.tools or []],
        "top_logprobs": data.top_logprobs or 0,
        "top_p": data.top_p,
        "truncation": "disabled",
        "background": False,
        "metadata": data.metadata or {},
    }


def _tool(tool: FunctionToolIn | FileSearchIn) -> Value:
    if isinstance(tool, FileSearchIn):
        return tool.model_dump(exclude_none=True)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }


def _usage(tally: Tally) -> Value:
    return {
        "input_tokens": tally.prompt_tokens,
        "input_tokens_details": {"cached_tokens": tally.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": tally.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": tally.reasoning_tokens},
        "total_tokens": tally.total_tokens,
    }


def _error(end: Failed | Refused) -> Value:
    """The codes of an error in a response are a closed list, of which these are ours."""
    is_limit = status_of(end.code) == 429
    code = "rate_limit_exceeded" if is_limit else "server_error"
    return {"code": code, "message": f"{end.code}: {end.message}"}
