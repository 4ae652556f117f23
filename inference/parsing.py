"""An answer's raw text, as it streams, into text, reasoning and tool calls.

The delimiters come from the model family's response template and are found by transformers'
ResponseParser, so that the parts are the same for any chunking of the text. A tool call whose JSON is
malformed or cut off is handed over as text: a model's mistake must never become an exception.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

Template = dict[str, Any]

PLAIN: Template = {
    "defaults": {"role": "assistant"},
    "start_anchor": "\x00",  # required, and never in a prompt: nothing of it is the answer's
    "fields": {"content": {"content": "text"}},
}
HERMES: Template = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "reasoning": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_call": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "text",  # its JSON is read here, so that malformed JSON raises nothing
        },
        "content": {"content": "text"},
    },
}


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A complete tool call. `arguments` is a JSON object as text."""

    name: str
    arguments: str


Segment = Text | Reasoning | Call


def template_for(chat_template: str) -> Template:
    """The response template of a model family, told by what its chat template writes."""
    if "<tool_call>" in chat_template or "<think>" in chat_template:
        return HERMES
    return PLAIN


class AnswerParser:
    """Reads one engine turn. White space at either end of the text is not part of the answer."""

    def __init__(self, chat_template: str, prompt_tail: str = "") -> None:
        """`prompt_tail` is the end of the prompt's text: a template may have opened <think>."""
        from transformers.utils.chat_parsing import ResponseParser  # a second of import

        template = template_for(chat_template)
        # Without the anchor the parser would take all of the prompt for the answer's beginning.
        begun = prompt_tail if template["start_anchor"] in prompt_tail else ""
        self._parser: ResponseParser = ResponseParser(template, prefix=begun)
        self._call_text: str | None = None
        self._space = ""
        self._has_text = False
        self._has_reasoning = False
        self._initial: list[dict[str, Any]] = list(self._parser.initial_events)

    def feed(self, text: str) -> list[Segment]:
        """The segments that this text completes or adds to."""
        events, self._initial = self._initial + self._parser.feed(text), []
        return self._segments(events)

    def finish(self) -> list[Segment]:
        """The rest; a tool call that is still open comes as text."""
        _, events = self._parser.finalize()
        segments = self._segments(self._initial + events, at_end=True)
        self._space = ""
        return segments

    def _segments(self, events: list[dict[str, Any]], at_end: bool = False) -> list[Segment]:
        segments: list[Segment] = []
        for event in events:
            field, kind = event["field"], event["type"]
            if field == "tool_call":
                segments += self._hear_call(kind, event.get("text", ""), at_end)
            elif kind == "region_chunk" and field == "content":
                segments += self._show(event["text"])
            elif kind == "region_chunk" and field == "reasoning":
                text = event["text"] if self._has_reasoning else event["text"].lstrip()
                self._has_reasoning = self._has_reasoning or bool(text)
                segments += [Reasoning(text)] if text else []
        return segments

    def _hear_call(self, kind: str, text: str, at_end: bool) -> list[Segment]:
        if kind == "region_open":
            self._call_text = ""
        elif kind == "region_chunk":
            self._call_text = (self._call_text or "") + text
        else:
            raw, self._call_text = self._call_text or "", None
            call = read_call(raw)
            closing = "" if at_end else "</tool_call>"
            return [call] if call else self._show(f"<tool_call>{raw}{closing}")
        return []

    def _show(self, text: str) -> list[Segment]:
        """Text for the reader. White space waits until something follows it."""
        text = self._space + text
        if not self._has_text:
            text = text.lstrip()
        shown = text.rstrip()
        self._space = text[len(shown) :]
        self._has_text = self._has_text or bool(shown)
        return [Text(shown)] if shown else []


def read_call(raw: str) -> Call | None:
    """A Hermes call, {"name": …, "arguments": {…}}; None when it is not one."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict):
        return None
    return Call(value["name"], json.dumps(arguments, ensure_ascii=False))
