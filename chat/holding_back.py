"""Text of an answer waits for the end of its sentence, so that it is judged before it is seen. Pure.

What a screen has shown cannot be taken back. So deltas are held until the sentence that they belong to
is complete, and no longer. A delta with token ids is never cut: whoever goes on with the answer after a
crash goes on behind the ids that were logged, and would lose or double the rest of its text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chat.events import Delta, PartKind
from moderation.normalising import without_unseen

MAX_HELD_CHARS = 400  # of what has no sentences, such as code
MAX_WORD_CHARS = 4_000  # a key, which is known by its whole
CONTEXT_CHARS = 200
MAX_OPEN_CHARS = 16_000  # of a key of many lines
_BETWEEN_WORDS = re.compile(r"(?<!\d)\s+|\s+(?!\s|\d)")  # not within the groups of a number
# Each run of stops, and each line, is looked at once: the time is linear in the text.
_END = re.compile(r"""(?<![.!?…])[.!?…]+["'”’»)\]*_]*(?=\s)|[。！？]+|\n(?=[^\S\n]*\n)""")
_SPACES = re.compile(r"\s{2,}")
_ABBREVIATION = re.compile(
    r"(?:\b(?:\w|[A-ZÄÖÜ]\w{1,2}|vs|cf|pp|ca|etc|bzw|usw|approx|e\.g|i\.e))$"
)
"""What a full stop behind it does not make a sentence of: "Mr. X", "e.g. this"."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Deltas of one part whose `text` is judged together, behind the `context` that was shown."""

    deltas: tuple[Delta, ...]
    context: str

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)

    def saying(self, text: str) -> "Piece":
        """The same with another text, in one delta."""
        first, ids = self.deltas[0], tuple(id_ for delta in self.deltas for id_ in delta.ids)
        return replace(self, deltas=(replace(first, text=text, ids=ids, logprobs=()),))


class HoldBack:
    """Takes deltas as they are written; gives them back, sentence by sentence."""

    def __init__(self, contexts: Mapping[PartKind, str] | None = None) -> None:
        """`contexts` are how the parts of an answer that is gone on with end so far."""
        self._held: list[Delta] = []
        self._part: PartKind = "text"
        self._contexts = dict(contexts or {})
        self._has_ids = False

    @property
    def cuts_update(self) -> bool:
        """Whether what is held is the end of an update of which the beginning was given back: it has
        none of the ids, which the first delta of an update carries for all."""
        return self._has_ids and bool(self._held) and not self._held[0].ids

    def hear(self, delta: Delta) -> list[Piece]:
        """What is complete with this delta: at most the part before it, and a piece of its own."""
        self._has_ids = self._has_ids or bool(delta.ids)
        if not delta.text:  # tokens that are no text yet: they come as text, also within a thought
            delta = replace(delta, part=self._part)
        pieces = self.rest() if self._held and delta.part != self._part else []
        self._part = delta.part
        self._held.append(delta)
        text = "".join(held.text for held in self._held)
        return pieces + self._take(self._whole_until(text))

    def goes_on_from(self, part: PartKind, text: str) -> None:
        """What the next piece of the part is judged behind: something has begun that may go on in it."""
        self._contexts[part] = max(text, self._contexts[part], key=len)[-MAX_OPEN_CHARS:]

    def rest(self) -> list[Piece]:
        """All that is held: the part has come to its end."""
        return self._piece(self._held) if self._held else []

    def _whole_until(self, text: str) -> int:
        """Up to which character there are whole sentences in whole deltas; 0: not yet."""
        ends = [found.end() for found in _END.finditer(text) if _is_end(text, found)]
        for end in reversed(ends):
            if (place := self._place_of(end, text)) is not None:
                return place
        if len(text) <= MAX_HELD_CHARS:
            return 0
        between = [found.end() for found in _BETWEEN_WORDS.finditer(text)]
        if between:
            return self._last_place_before(between[-1])
        return self._last_place_before(len(text)) if len(text) > MAX_WORD_CHARS else 0

    def _place_of(self, end: int, text: str) -> int | None:
        """Where to cut so that a sentence and nothing of the next one is taken; None: in no delta."""
        at = 0
        for delta in self._held:
            if at + len(delta.text) > end and not delta.ids:
                return end
            at += len(delta.text)
            if at >= end:
                return at if not text[end:at].strip() else None
        return None

    def _last_place_before(self, end: int) -> int:
        at = 0
        for delta in self._held:
            if at + len(delta.text) > end:
                return at if delta.ids else end
            at += len(delta.text)
        return at

    def _take(self, end: int) -> list[Piece]:
        """The deltas up to character `end` of what is held, at which one ends or may be cut."""
        if not end:
            return []
        taken: list[Delta] = []
        left = list(self._held)
        while end:
            first = left.pop(0)
            if len(first.text) > end:
                left.insert(0, replace(first, text=first.text[end:], offset=first.offset + end))
                first = replace(first, text=first.text[:end])
            taken.append(first)
            end -= len(first.text)
        pieces = self._piece(taken)
        self._held = left
        return pieces

    def _piece(self, deltas: Sequence[Delta]) -> list[Piece]:
        piece = Piece(tuple(deltas), self._contexts.get(self._part, ""))
        self._contexts[self._part] = context_of(piece.context + piece.text)
        self._held = []
        return [piece]


def context_of(text: str) -> str:
    """The end of what was shown, as what follows is judged behind it: what nobody sees is left out, or
    enough of it would put half of a phrase out of sight of the judge."""
    return _SPACES.sub(_space, without_unseen(text))[-CONTEXT_CHARS:]


def _space(run: re.Match[str]) -> str:
    return "\n" if "\n" in run.group() else " "


def _is_end(text: str, found: re.Match[str]) -> bool:
    if found.group()[0] != ".":
        return True
    return _ABBREVIATION.search(text, max(0, found.start() - 8), found.start()) is None


def placed(piece: Piece, num_shown: int) -> list[Delta]:
    """The deltas of a piece, of whose part so many characters were shown before."""
    deltas = []
    for delta in piece.deltas:
        deltas.append(replace(delta, offset=num_shown))
        num_shown += len(delta.text)
    return deltas
