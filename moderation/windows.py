"""What is judged of a text: its windows, what it says in disguise, and its pieces beside each other.

A classifier sees a page as a mean of all that it says, in which one planted sentence drowns; and it
reads some hundred tokens and no more. So long texts are cut, and the worst window counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from moderation.disguises import undisguised

WINDOW_WORDS = 32
"""Of the windows that the heads were trained and calibrated for."""
# Behind a sentence, a line (also one that is escaped, as in JSON), or an element of markup. A dotted
# line is looked at from its first dot only: from each, it would take a time by the square.
_END = re.compile(
    r"(?<![.!?])[.!?]+[\"'”’)\]]*\s+|[。！？]+\s*|\n\s*|(?:\\n\s*)+|</[A-Za-z][A-Za-z0-9]{0,15}>\s*"
)
_WORD = re.compile(r"\S+\s*")
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯]")
_CJK_PER_WORD = 4
_CHARACTERS_PER_WORD = 16
_LEAST_PIECE_WORDS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """Some text to judge, and the pieces of it that a model reads: one where it is short."""

    text: str
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """What is judged of a text: `parts` each for itself, and each of its `pieces` beside the others.

    A text of one window has no pieces.
    """

    parts: tuple[Part, ...]
    pieces: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        """All that a model has to read, each once. Windows overlap, and still nothing is read twice."""
        yield from dict.fromkeys(piece for part in self.parts for piece in part.pieces)


def read(text: str) -> Read:
    """Windows and disguises, and the pieces where there are several."""
    plain = windows(text)
    hidden = [window for said in undisguised(text) for window in windows(said)]
    parts = tuple(dict.fromkeys([*plain, *hidden]))
    pieces = tuple(piece for piece in map(str.strip, pieces_of(text)) if piece)
    return Read(parts, pieces if len(plain) > 1 and len(pieces) > 1 else ())


def readings(text: str, num_words: int = WINDOW_WORDS) -> list[str]:
    """What to score, each of so many words at most; the worst of it counts (see `categories.worst`). At
    least one, and the text itself where it is short and in no disguise.

    All of the text is in it, however long: a cut would invite to write the attack behind it. Whoever has
    a budget limits the text.
    """
    said = [text, *undisguised(text)]
    found = (window.text for one in said for window in windows(one, num_words))
    return list(dict.fromkeys(found))


# --- windows --------------------------------------------------------------------------------------


def windows(text: str, num_words: int = WINDOW_WORDS) -> list[Part]:
    """Runs of sentences of about so many words, each of which shares a quarter with the next one. Of a
    longer sentence, runs of words."""
    if words_in(text) <= num_words:
        return [whole(text)]
    pieces = pieces_of(text, num_words)
    lengths = [words_in(piece) for piece in pieces]
    found: list[Part] = []
    start = end = 0
    while end < len(pieces):
        end, size = start, 0
        while end < len(pieces) and (end == start or size + lengths[end] <= num_words):
            size += lengths[end]
            end += 1
        run = tuple(filter(None, map(str.strip, pieces[start:end])))
        found.append(Part("".join(pieces[start:end]).strip(), run))
        skipped = lengths[start]
        start += 1
        while start < end and skipped < size * 3 / 4:
            skipped += lengths[start]
            start += 1
    return [window for window in found if window.text] or [Part(text.strip(), (text.strip(),))]


def whole(text: str, num_words: int = WINDOW_WORDS) -> Part:
    """Of any length as one part."""
    if words_in(text) <= num_words:
        return Part(text, (text,))
    return Part(text, tuple(filter(None, map(str.strip, pieces_of(text, num_words)))))


def pieces_of(text: str, num_words: int = WINDOW_WORDS) -> list[str]:
    """Sentences, lines and elements of markup; neighbours of a word or two together. Longer ones than
    a window are cut to halves of one. Together they are the text."""
    found: list[str] = []
    short = ""
    for sentence in _sentences(text):
        if len(sentence.split()) < _LEAST_PIECE_WORDS and len(sentence) < _CHARACTERS_PER_WORD:
            short += sentence
            continue
        if short.strip():
            found += _cut(short, num_words)
            short = ""
        found += _cut(short + sentence, num_words)
        short = ""
    found += _cut(short, num_words) if short else ()
    return found


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    if start < len(text):
        yield text[start:]


def _cut(sentence: str, num_words: int) -> Iterator[str]:
    """Whole where it fits into a window, else in runs of half a window at most."""
    if words_in(sentence) <= num_words:
        yield sentence
        return
    most = num_words // 2
    piece, size = "", 0
    for word in _WORD.findall(sentence) or [sentence]:
        for part in _parts(word, most):
            length = words_in(part)
            if piece and size + length > most:
                yield piece
                piece, size = "", 0
            piece += part
            size += length
    yield piece


def _parts(word: str, most: int) -> list[str]:
    """Scripts without spaces make long words, and so do base64 and addresses."""
    longest = max(1, _CJK_PER_WORD * most)
    return [word[at : at + longest] for at in range(0, len(word), longest)]


def words_in(text: str) -> int:
    """How many; of scripts without spaces, and of very long words, so many characters count as one."""
    num_words = len(text.split()) + len(_CJK.findall(text)) // _CJK_PER_WORD
    return max(num_words, len(text) // _CHARACTERS_PER_WORD)
