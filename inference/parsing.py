"""An answer's raw text, as it streams, into text, reasoning and tool calls.

The delimiters are those of the model's family and are found by transformers' ResponseParser (see
`call_ends`), so that the parts are the same for any chunking of the text. A tool call that is malformed
or cut off is handed over as text: a model's mistake must never become an exception.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from inference.call_forms import Call, Family, family_of, with_branches_pointed


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of the model's thinking."""

    text: str


Segment = Text | Reasoning | Call


class AnswerParser:
    """Reads one engine turn. White space at either end of the text is not part of the answer."""

    def __init__(
        self,
        chat_template: str,
        prompt_tail: str = "",
        tools: Sequence[dict[str, Any]] = (),
        *,
        goes_on: bool = False,
        answer_mark: str = "",
    ) -> None:
        """`prompt_tail` is the end of the prompt's text: a template may have opened <think>.

        With an `answer_mark` all behind the first one is text, whatever marks it spells: a grammar makes
        it JSON, which may well speak of them.
        `tools` are those that the prompt offers, in OpenAI's form; without any a call is text, as it was
        written. `goes_on`: the prompt ends in the answer's own text, so that white space which comes
        next is part of it.
        """
        from inference.call_ends import CallParser  # a second of import: transformers

        self._offered = {t["function"]["name"]: _properties(t["function"]) for t in tools}
        self._family = family_of(chat_template, has_tools=bool(tools))
        template = _response_template(self._family, has_tools=bool(tools))
        # Without an anchor the parser would take all of the prompt for the answer's beginning.
        is_begun = self._family.begun(prompt_tail) is not None
        prefix = prompt_tail if is_begun else ""
        self._parser = CallParser(template, prefix=prefix, reads=self._reads)
        self._call_text: str | None = None
        self._space = ""
        self._has_text = goes_on
        self._answer_mark = answer_mark
        self._before_mark = ""  # what may be its beginning
        self._is_answer = False
        self._has_reasoning = False
        self._initial: list[dict[str, Any]] = list(self._parser.initial_events)

    @property
    def is_calling(self) -> bool:
        """Whether a tool call has begun that is not whole yet."""
        return self._call_text is not None

    def feed(self, text: str) -> list[Segment]:
        """The segments that this text completes or adds to."""
        if self._is_answer:
            return self._show(text)
        if not self._answer_mark:
            return self._read(text)
        text = self._before_mark + text
        before, mark, answer = text.partition(self._answer_mark)
        if not mark:
            num_held = _length_of_beginning(text, mark=self._answer_mark)
            self._before_mark = text[len(text) - num_held :]
            return self._read(text[: len(text) - num_held])
        self._is_answer = True
        return self._read(before + mark) + self._show(answer)

    def finish(self) -> list[Segment]:
        """The rest; a tool call that is still open comes as text."""
        segments: list[Segment] = []
        if not self._is_answer:
            segments = self._read(self._before_mark)
            _, events = self._parser.finalize()
            segments += self._segments(self._initial + events)
        self._space = ""
        return segments

    def _read(self, text: str) -> list[Segment]:
        events, self._initial = self._initial + self._parser.feed(text), []
        return self._segments(events)

    def _segments(self, events: list[dict[str, Any]]) -> list[Segment]:
        segments: list[Segment] = []
        for event in events:
            field, kind = event["field"], event["type"]
            if field == "tool_call":
                segments += self._hear_call(kind, event.get("text", ""), event.get("is_cut", False))
            elif kind == "region_chunk" and field in ("content", "final"):
                segments += self._show(event["text"])
            elif kind == "region_chunk" and field == "reasoning":
                text = event["text"] if self._has_reasoning else event["text"].lstrip()
                self._has_reasoning = self._has_reasoning or bool(text)
                segments += [Reasoning(text)] if text else []
        return segments

    def _hear_call(self, kind: str, text: str, is_cut: bool) -> list[Segment]:
        if kind == "region_open":
            self._call_text = ""
        elif kind == "region_chunk":
            self._call_text = (self._call_text or "") + text
        else:
            raw, self._call_text = self._call_text or "", None
            if calls := self._family.read(raw, self._offered):
                return list(calls)
            closing = "" if is_cut else self._family.closing
            return self._show(f"{self._family.opening}{raw}{closing}")
        return []

    def _reads(self, raw: str) -> bool:
        return bool(self._family.read(raw, self._offered))

    def _show(self, text: str) -> list[Segment]:
        """Text for the reader. White space waits until something follows it."""
        text = self._space + text
        if not self._has_text:
            text = text.lstrip()
        shown = text.rstrip()
        self._space = text[len(shown) :]
        self._has_text = self._has_text or bool(shown)
        return [Text(shown)] if shown else []


def _length_of_beginning(text: str, *, mark: str) -> int:
    """Of the end of a text that may go on as the mark."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)


def _properties(function: dict[str, Any]) -> dict[str, Any]:
    """The schemas of a function's parameters; callers may have written anything."""
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        return {}
    properties = parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: with_branches_pointed(schema, parameters) for name, schema in properties.items()}


@cache
def _response_template(family: Family, *, has_tools: bool) -> Any:
    """As transformers reads it, once for all answers: it compiles each mark."""
    from transformers.utils.chat_parsing.response_templates import load_response_template

    fields = dict(family.template["fields"])
    if not has_tools:
        fields.pop("tool_call", None)
    return load_response_template({**family.template, "fields": fields})
