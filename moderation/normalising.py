"""Texts as they are judged: without what hides words from a reader's eye or from a pattern.

Characters that nobody sees are left out, those that only look different become plain ones (NFKC), a
letter and its accent become one, strokes through letters go, and in words that mix scripts letters that
look like Latin ones become these. What is shown, kept and answered stays as it was written, but for tag
characters: no reader sees them, and a model would read them as the letters that they stand for.
"""

import unicodedata
from dataclasses import dataclass

import regex

# Format characters (zero width, bidi controls, tags), variation selectors, fillers that look empty,
# control characters but for those that begin lines, and halves of characters, which JSON can escape and
# no classifier could read.
_CONTROLS = r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_UNSEEN = regex.compile(
    rf"[\p{{Cf}}\p{{Cs}}\p{{Variation_Selector}}{_CONTROLS}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]"
)
_TAGS = regex.compile(
    # Flags of Scotland, Wales and others are made of them, and stay.
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\U000e0000-\U000e007f]+"
)
_UNSEEN_ASCII = regex.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
# What belongs to the character before it: marks, and the second and third parts of Korean syllables.
_JOINED = regex.compile(r"[\p{M}\u1161-\u11ff]")
_PLAIN_BASE = regex.compile(r"[\p{ASCII}\p{Latin}\p{Greek}\p{Cyrillic}]")
_WORD = regex.compile(r"\w+")
_LATIN = regex.compile(r"\p{Latin}")
_LOOKALIKES = str.maketrans(
    # Cyrillic, then Greek: letters of the Unicode Consortium's confusables.txt that are one letter.
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅ" + "αορνικυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwABEKMHOPCTYXIJS" + "aopvikuABEZHIKMNOPTYX",
)


@dataclass(frozen=True, slots=True)
class Normal:
    """`text` to judge. `origins[i]` is where its character i stands in what was written, and one more
    for the end; None: they are the same."""

    text: str
    origins: tuple[int, ...] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where characters `start` to `end` of the text stand in what was written."""
        if self.origins is None or start == end:
            return start, end
        return self.origins[start], self.origins[end - 1] + 1


def without_tags(text: str) -> str:
    """Without tag characters but for those of flags."""
    return text if text.isascii() else str(_TAGS.sub(lambda found: found[1] or "", text))


def judged(written: str, normal: Normal | None = None) -> str:
    """As classifiers read it: normalised (as `normal`, where that is at hand), and what tag characters
    spell on lines of its own, so that neither parts the other's words."""
    return "\n".join([(normal or normalised(written)).text, *spelled_by_tags(written)])


def spelled_by_tags(text: str) -> list[str]:
    """What runs of them say. Each stands for a character of ASCII, or for nothing."""
    if text.isascii():
        return []
    hidden = (found[0] for found in _TAGS.finditer(text) if not found[1])
    said = ("".join(chr(ord(tag) - 0xE0000) for tag in run) for run in hidden)
    return [line for one in said if (line := _UNSEEN_ASCII.sub("", one).strip())]


def without_unseen(text: str) -> str:
    return str(_UNSEEN.sub("", text))


def normalised(written: str) -> Normal:
    if written.isascii() and _UNSEEN_ASCII.search(written) is None:
        return Normal(written)
    characters: list[str] = []
    origins: list[int] = []
    for at, one in enumerate(written):
        if _UNSEEN.match(one):
            continue
        plains = one if one.isascii() else unicodedata.normalize("NFKC", one)
        for plain in plains:
            if characters and _JOINED.match(plain):
                whole = _with_mark(characters[-1], plain)
                if whole is not None:
                    characters[-1] = whole
                    continue
            characters.append(plain)
            origins.append(at)
    text = _without_lookalikes("".join(characters))
    return Normal(text, (*origins, len(written)))


def _with_mark(base: str, mark: str) -> str | None:
    """Both as one character; of our scripts the base alone, where there is none: a stroke hides a word
    from a pattern, and from no reader. None: a letter of its own, as vowels of Indian scripts are."""
    whole = unicodedata.normalize("NFC", base + mark)
    if len(whole) == 1:
        return whole
    return base if _PLAIN_BASE.match(base) and not base.isspace() else None


def _without_lookalikes(text: str) -> str:
    """Each is one character for one, so that origins hold."""
    return str(_WORD.sub(lambda word: _plain(word.group()), text))


def _plain(word: str) -> str:
    plain = word.translate(_LOOKALIKES)
    # A word of another script alone is that script's: "рассказ" stays.
    is_mixed = plain != word and (bool(_LATIN.search(word)) or plain.isascii())
    return plain if is_mixed and plain.isascii() else word
