"""The events of an answer as those of /v1/messages, which build up the message's blocks."""

import json
from collections.abc import Iterator
from typing import Any

from chat.anthropic_errors import error_body
from chat.api_errors import status_of
from chat.events import Delta, Event, Failed, Finished, Phase, Refused, ToolCall
from chat.openai_usage import Tally
from chat.wire import dumps

Value = dict[str, Any]
_EMPTY: dict[str, Value] = {
    "text": {"type": "text", "text": ""},
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
}
_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


class MessageWriter:
    """`body` is the message as it stands."""

    def __init__(self, model: str, id_: str) -> None:
        self.body: Value = {
            "id": id_,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(0, 0, 0),
        }
        self.tally = Tally()
        self._open: str | None = None  # the kind of part that is being written

    @property
    def blocks(self) -> list[Value]:
        content: list[Value] = self.body["content"]
        return content

    def begin(self, first: Event | None) -> Iterator[str]:
        """The engine has counted the prompt when it begins to read it; before, the end alone tells."""
        if isinstance(first, Phase):
            self.body["usage"] = _usage(first.total, first.cached, 0)
        yield _frame("message_start", message=self.body)

    def hear(self, event: Event) -> Iterator[str]:
        """The frames that an event makes; they have to be taken."""
        self.tally.hear(event)
        match event:
            case Delta(text=text, part=part) if text:
                yield from self._write(part, text)
            case ToolCall():
                yield from self._close()
                yield from self._call(event)
            case Finished():
                yield from self._finish(event)
            case Failed() | Refused():
                body = error_body(status_of(event.code), event.code, event.message)
                yield _frame("error", **body)

    def _write(self, part: str, text: str) -> Iterator[str]:
        if self._open != part:
            yield from self._close()
            self._open = part
            yield from self._start_block(dict(_EMPTY[part]))
        field = "text" if part == "text" else "thinking"
        self.blocks[-1][field] += text
        yield self._block_frame("delta", delta={"type": f"{field}_delta", field: text})

    def _call(self, call: ToolCall) -> Iterator[str]:
        """The engine tells of a call when it is whole, so all of it is one delta."""
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield from self._start_block(block)
        block["input"] = json.loads(call.arguments)
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        yield self._block_frame("delta", delta=delta)
        yield self._block_frame("stop")

    def _start_block(self, block: Value) -> Iterator[str]:
        self.blocks.append(block)
        yield self._block_frame("start", content_block=block)

    def _close(self) -> Iterator[str]:
        if self._open is not None:
            self._open = None
            yield self._block_frame("stop")

    def _finish(self, end: Finished) -> Iterator[str]:
        yield from self._close()
        reason = "stop_sequence" if end.stop is not None else _REASONS[end.reason]
        told = {"stop_reason": reason, "stop_sequence": end.stop}
        tally = self.tally
        usage = _usage(tally.prompt_tokens, tally.cached_tokens, tally.completion_tokens)
        self.body |= {**told, "usage": usage, "timings": tally.timings()}
        yield _frame("message_delta", delta=told, usage=usage)
        yield _frame("message_stop")

    def _block_frame(self, what: str, **fields: Any) -> str:
        return _frame(f"content_block_{what}", index=len(self.blocks) - 1, **fields)


def _usage(prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> Value:
    """Here cached tokens are not among the input tokens."""
    return {
        "input_tokens": prompt_tokens - cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": completion_tokens,
    }


def _frame(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {dumps({'type': kind, **fields})}\n\n"
