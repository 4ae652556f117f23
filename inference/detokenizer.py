"""Token ids to text, as they come: never half a character, never a part of a stop string."""

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

_MOST_UNFINISHED = 3  # tokens of one character: of four bytes one is missing
_MOST_HELD = 8
_MOST_OF_PROMPT = 8


class Detokenizer:
    """The text that an answer adds `behind` a prompt's ids. A stop string has no effect within the first
    `min_tokens`.

    Resuming an answer means feeding all its old ids into a new Detokenizer and dropping the text:
    priming DecodeStream with ids instead gives other text when the cut lies inside a character
    (measured: 25 of 59 cuts wrong).
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: tuple[str, ...] = (),
        *,
        min_tokens: int = 0,
        behind: Sequence[int] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._num_unstoppable = min_tokens
        # Of the last piece of text: what comes is decoded behind it. And those that have come since.
        self._shown_ids, whole = self._end_of(behind)
        self._held_ids: list[int] = []
        self._stream = DecodeStream(self._shown_ids, skip_special_tokens=False)
        # Of the text of `_shown_ids`, by what comes, where the stream says that text again.
        before = self._decode(self._shown_ids)
        is_unfinished = before.endswith("\ufffd")
        self._shown: tuple[str, ...] | None = (before, whole) if is_unfinished else None
        self._stop = StopStrings(stop)

    @property
    def matched_stop(self) -> str | None:
        """The stop string that ended the text, once one has."""
        return self._stop.matched

    def feed(self, ids: Iterable[int]) -> str:
        """The text that these ids add and that may be shown."""
        shown = ""
        for token_id in ids:
            text = self._step(token_id)
            self._num_unstoppable -= 1
            shown += text if self._num_unstoppable >= 0 else self._stop.feed(text)
        return shown

    def finish(self) -> str:
        """What was held back. An unfinished character at the very end is dropped."""
        text = self._held_text()
        shown = text if self._num_unstoppable >= 0 else self._stop.feed(text)
        return shown + self._stop.flush()

    def _end_of(self, prompt: Sequence[int]) -> tuple[list[int], str]:
        """As little of it as is whole characters, with their text, and an unfinished one behind them:
        decoders take the blank off the first token of a text, which the answer's is not."""
        end = list(prompt[-_MOST_OF_PROMPT - _MOST_UNFINISHED :])
        for num_unfinished in range(_MOST_UNFINISHED + 1):
            whole = end[: len(end) - num_unfinished]
            for num in range(1, min(len(whole), _MOST_OF_PROMPT) + 1):
                text = self._decode(whole[-num:])
                if text and "\ufffd" not in text:
                    return end[len(whole) - num :], text
        return end, ""

    def _step(self, token_id: int) -> str:
        self._held_ids.append(token_id)
        try:
            text = self._stream.step(self._tokenizer, token_id) or ""
        except Exception:  # tokenizers raises bare Exception: "Invalid prefix encountered"
            # Seen with byte fallback vocabularies; vLLM recovers the same way (#17448).
            self._stream = DecodeStream(skip_special_tokens=False)
            text = self._stream.step(self._tokenizer, token_id) or ""
            self._held_ids, self._shown = [token_id], None
        if text:
            text = _behind(text, self._shown or ())
            self._shown_ids, self._held_ids, self._shown = self._held_ids, [], None
        elif len(self._held_ids) > _MOST_HELD:
            text = self._let_go()
        return text

    def _let_go(self) -> str:
        """What is held and cannot become a character any more: all but an unfinished one at the end.

        Tokens that are never a character would else be decoded together with all before them, each time.
        How many are unfinished is told by what is decoded without them: where one of them is left, or
        bytes are taken one by one because the last of them is, there is more that is no character. And
        where both parts have more of it than the whole, the cut is within one.
        """
        held, cuts = self._held_ids, []
        for num in range(_MOST_UNFINISHED + 1):
            whole, unfinished = held[: len(held) - num], held[len(held) - num :]
            self._held_ids = whole
            text = self._behind_shown()
            num_broken = text.count("\ufffd")
            num_behind = self._decode(unfinished).count("\ufffd")
            cuts.append((num_broken, num_broken + num_behind, text, unfinished))
        most = cuts[0][0]
        _, _, text, unfinished = min(
            (cut for cut in cuts if cut[1] <= most), key=lambda cut: cut[0]
        )
        # The stream says all of what is unfinished again, once it is finished.
        self._shown_ids, self._shown = (unfinished, ("",)) if unfinished else (held, None)
        self._held_ids = []
        self._stream = DecodeStream(self._shown_ids, skip_special_tokens=False)
        return text

    def _held_text(self) -> str:
        """What comes before an unfinished character: a token may end one and begin the next."""
        return self._behind_shown().rstrip("\ufffd")

    def _behind_shown(self) -> str:
        both = self._decode(self._shown_ids + self._held_ids)
        if self._shown is not None:
            return _behind(both, self._shown)
        shown = self._decode(self._shown_ids)
        return both.removeprefix(shown) if both.startswith(shown) else self._decode(self._held_ids)

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


def _behind(text: str, shown: Sequence[str]) -> str:
    """An unfinished character at the end of what is shown may have become another one in the text."""
    return text[max((_num_shared(text, one) for one in shown), default=0) :]


def _num_shared(text: str, other: str) -> int:
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, same) in pairs if one != same), min(len(text), len(other)))


class StopStrings:
    """Cuts a text in front of the first stop string, for any chunking of the text.

    Only what could still become a stop string is held back, not a fixed number of characters.
    """

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._stop = tuple(s for s in stop if s)
        self._held = ""
        self.matched: str | None = None

    def feed(self, text: str) -> str:
        """The text that is safe to show; empty after a match."""
        if self.matched is not None or not self._stop:
            return text if self.matched is None else ""
        self._held += text
        found = min(
            ((i, s) for s in self._stop if (i := self._held.find(s)) >= 0),
            key=lambda hit: (hit[0] + len(hit[1]), hit[0]),
            default=None,
        )
        if found is not None:
            index, self.matched = found
            shown, self._held = self._held[:index], ""
            return shown
        keep = self._longest_open_prefix()
        shown, self._held = self._held[: len(self._held) - keep], self._held[-keep:] if keep else ""
        return shown

    def flush(self) -> str:
        """The held back text, when the answer ends without a match."""
        held, self._held = self._held, ""
        return "" if self.matched is not None else held

    def _longest_open_prefix(self) -> int:
        """Length of the longest end of the held text that begins some stop string."""
        longest = min(len(self._held), max(map(len, self._stop)) - 1)
        for length in range(longest, 0, -1):
            tail = self._held[-length:]
            if any(s.startswith(tail) for s in self._stop):
                return length
        return 0
