"""What is judged of a text: its windows, and what is written in them under a disguise.

A classifier sees a page as a mean of all that it says, in which one planted sentence drowns; and it
reads some hundred tokens and no more. So long texts are cut, and the worst window counts.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass

WINDOW_WORDS = 32
"""Of the windows that the heads were trained and calibrated for."""
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*\s*|[.!?。！？\n]+\s*")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*(?=\S)")
_WORD = re.compile(r"\S+\s*")
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯]")
_CJK_PER_WORD = 4
_CHARACTERS_PER_WORD = 16

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}\s?){8,}")
_BINARY = re.compile(r"(?:[01]{8}\s?){4,}")
_SPACED = re.compile(r"(?:\b\w[ .\-_]+){6,}\w\b")
_LEET_WORD = re.compile(r"(?i)\b(?=\w*[a-z])(?=\w*[0134578@$])[\w@$]{2,}")
_LEET = str.maketrans("0134578@$", "oieastbas")
_MIN_LEET_WORDS = 2


@dataclass(frozen=True, slots=True)
class Read:
    """What is judged of a text: `parts` each for itself, and the `tail` by what stands `before` it."""

    parts: tuple[str, ...]
    before: tuple[str, ...]
    tail: str

    def __iter__(self) -> Iterator[str]:
        """All that a model has to read."""
        yield from self.parts
        if self.tail:
            yield self.tail


def read(text: str) -> Read:
    """Windows and disguises, and the tail where there is one."""
    plain = windows(text)
    return Read(tuple(_with_disguises(text, plain)), tuple(plain[:-1]), tail(text))


def readings(text: str, num_words: int = WINDOW_WORDS) -> list[str]:
    """What to score, each of so many words at most; the worst of it counts (see `categories.worst`). At
    least one, and the text itself where it is short and in no disguise.

    All of the text is in it, however long: a cut would invite to write the attack behind it. Whoever has
    a budget limits the text.
    """
    return _with_disguises(text, windows(text, num_words), num_words)


def _with_disguises(text: str, plain: list[str], num_words: int = WINDOW_WORDS) -> list[str]:
    """The windows of a text, and behind them those of what it says under a disguise; each once."""
    hidden = [window for said in _undisguised(text) for window in windows(said, num_words)]
    return list(dict.fromkeys(plain + hidden))


# --- windows --------------------------------------------------------------------------------------


def windows(text: str, num_words: int = WINDOW_WORDS) -> list[str]:
    """Runs of sentences of about so many words, each of which shares a quarter with the next one. Of a
    longer sentence, runs of words."""
    if _num_words(text) <= num_words:
        return [text]
    most = num_words // 2
    pieces = [piece for sentence in _SENTENCE.findall(text) for piece in _pieces(sentence, most)]
    lengths = [_num_words(piece) for piece in pieces]
    found: list[str] = []
    start = end = 0
    while end < len(pieces):
        end, size = start, 0
        while end < len(pieces) and (end == start or size + lengths[end] <= num_words):
            size += lengths[end]
            end += 1
        found.append("".join(pieces[start:end]).strip())
        skipped = lengths[start]
        start += 1
        while start < end and skipped < size * 3 / 4:
            skipped += lengths[start]
            start += 1
    return [window for window in found if window] or [text.strip()]


def tail(text: str, num_words: int = WINDOW_WORDS) -> str:
    """The last line or, of a longer one, its last sentence; nothing where a text is one window, or has
    no end that is shorter than one.

    An order behind a long document is but a part of the last window.
    """
    if _num_words(text) <= num_words:
        return ""
    line = text.rstrip().rpartition("\n")[2].strip()
    if line == text.strip() or _num_words(line) > num_words:
        line = _BETWEEN_SENTENCES.split(line)[-1]
    return line if _num_words(line) <= num_words else ""


def _pieces(sentence: str, most: int) -> Iterator[str]:
    """Of at most so many words: half a window."""
    if _num_words(sentence) <= most:
        yield sentence
        return
    piece, num_words = "", 0
    for word in _WORD.findall(sentence) or [sentence]:
        for part in _parts(word, most):
            size = _num_words(part)
            if piece and num_words + size > most:
                yield piece
                piece, num_words = "", 0
            piece += part
            num_words += size
    yield piece


def _parts(word: str, most: int) -> list[str]:
    """Scripts without spaces make long words, and so do base64 and addresses."""
    longest = max(1, _CJK_PER_WORD * most)
    return [word[at : at + longest] for at in range(0, len(word), longest)]


def _num_words(text: str) -> int:
    """Words; of scripts without spaces, and of very long words, so many characters count as one."""
    num_words = len(text.split()) + len(_CJK.findall(text)) // _CJK_PER_WORD
    return max(num_words, len(text) // _CHARACTERS_PER_WORD)


# --- disguises ------------------------------------------------------------------------------------


def _undisguised(text: str) -> Iterator[str]:
    """What the text says in base64, hexadecimal or binary, in l33t or with s p a c e s between."""
    for run in _BASE64.findall(text):
        yield from _readable(_from_base64(run))
    for run in _HEX.findall(text):
        yield from _readable(bytes.fromhex("".join(run.split())))
    for run in _BINARY.findall(text):
        bits = "".join(run.split())
        yield from _readable(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)))
    if len(_LEET_WORD.findall(text)) >= _MIN_LEET_WORDS:
        yield _LEET_WORD.sub(lambda found: found[0].translate(_LEET), text)
    for run in _SPACED.findall(text):
        words = re.split(r"\s{2,}", run)
        yield " ".join(re.sub(r"[ .\-_]", "", word) for word in words)


def _from_base64(run: str) -> bytes:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except binascii.Error:
        return b""


def _readable(found: bytes) -> Iterator[str]:
    """Words only: keys and pictures are no disguise."""
    try:
        text = found.decode()
    except UnicodeDecodeError:
        return
    if len(text) >= 8 and text.isprintable() and sum(map(str.isalpha, text)) > 0.6 * len(text):
        yield text
