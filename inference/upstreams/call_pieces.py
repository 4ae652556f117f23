"""Tool calls of OpenAI's protocol, put together from the pieces that servers stream."""

import json
from dataclasses import dataclass
from typing import Any

from inference.call_forms import loaded
from inference.parsing import Segment
from inference.upstreams.wire import call_or_text


@dataclass(slots=True)
class _Call:
    index: Any
    id: str
    name: str = ""
    arguments: str = ""

    def is_followed_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Whether a piece of the same index begins another call. Only a name begins one.

        Ollama and Gemini count all calls 0 and tell them apart by ids, some servers not even so;
        others repeat the name in each piece, and older ones of vLLM draw a new id for each.
        """
        if not name:
            return False
        if call_id and self.id:
            return call_id != self.id
        is_another = name != self.name or bool(arguments)
        return is_another and self.is_whole

    @property
    def is_whole(self) -> bool:
        # What is long is not read at each piece.
        return self.arguments.endswith("}") and isinstance(loaded(self.arguments), dict)


class CallPieces:
    """All calls of one answer, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, piece: dict[str, Any]) -> None:
        """Raises what malformed data raises."""
        function = piece.get("function") or {}
        name, arguments = function.get("name") or "", _text_of(function.get("arguments"))
        call = self._call_of(piece.get("index"), str(piece.get("id") or ""), name, arguments)
        if name != call.name:  # some servers repeat it in each piece
            call.name += name
        call.arguments += arguments

    def segments(self) -> list[Segment]:
        """Each call whole; as text what is none."""
        return [call_or_text(call.name, call.arguments) for call in self._calls]

    def _call_of(self, index: Any, call_id: str, name: str, arguments: str) -> _Call:
        """The call that a piece belongs to. Where there is neither index nor id, a name behind
        arguments begins the next."""
        if index is None and not call_id and self._calls:
            last = self._calls[-1]
            if not (name and last.arguments):
                return last
        else:
            same = (call for call in reversed(self._calls) if call.index == (index or 0))
            call = next(same, None)
            if call and not call.is_followed_by(call_id, name, arguments):
                call.id = call.id or call_id
                return call
        self._calls.append(_Call(index or 0, call_id))
        return self._calls[-1]


def _text_of(arguments: Any) -> str:
    """Some servers write the object itself, not its text."""
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    return arguments or ""
