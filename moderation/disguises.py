"""What a text says in a code that hides words from a classifier, and that a model reads all the same.

Only what needs no key and takes one pass: encodings of bytes, ciphers of letters, and words that are
taken apart.
"""

import base64
import binascii
import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import unquote

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE32 = re.compile(r"\b[A-Z2-7]{24,}={0,6}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}\s?){8,}")
_BINARY = re.compile(r"(?:[01]{8}\s?){4,}")
_DECIMAL = re.compile(r"(?:\b\d{2,3}[ ,;]{1,2}){7,}\d{2,3}\b")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[\w.+-]{0,20}){4,}")
_ENTITIES = re.compile(r"(?:&#x?[0-9A-Fa-f]{1,6};\s?){4,}")
_ESCAPES = re.compile(r"(?:\\(?:u00|x)[0-9A-Fa-f]{2}){4,}")
_MORSE = re.compile(r"(?:[.\-]{1,6}[ /|]{1,3}){7,}[.\-]{1,6}")
_SPACED = re.compile(r"(?:\b\w[ .\-_]+){6,}\w\b")
_LEET_WORD = re.compile(r"(?i)\b(?=\w*[a-z])(?=\w*[0134578@$])[\w@$]{2,}")
_LEET = str.maketrans("0134578@$", "oieastbas")
_MIN_LEET_WORDS = 2
_ASSIGNED = re.compile(r"\b\w{1,20}\s?=\s?(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})')")
_ADDED = re.compile(r"[\"']\s?\+\s?[\"']")

_WORD = re.compile(r"[A-Za-z]+")
_SENTENCE = re.compile(r"[^.!?\n]+")
_COMMON_WORDS = """
    the and you your for that this with from all what are not ignore previous instructions say
    tell password show give state print instead user system prompt secret reveal where who how
    does forget disregard rules conclusion write answer following above now must output repeat
    send is of to
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_SHORTEST = 3  # of two letters, every other word of another language has the same distances
_LEAST_SHARE = 0.2
_MIN_WORDS = 4
_ALL_ONSETS = """
    b bl br c ch cl cr d dr f fl fr g gl gn gr h j k kn l m n p ph pl pr q qu r s sc sch scr sh sk
    sl sm sn sp spl spr st str sw t th thr tr tw v w wh wr x z
"""
_ONSETS = frozenset(_ALL_ONSETS.split())
_LONGEST_ONSET = max(map(len, _ONSETS))
_LETTERS = {
    ".-": "a", "-...": "b", "-.-.": "c", "-..": "d", ".": "e", "..-.": "f", "--.": "g", "....": "h",
    "..": "i", ".---": "j", "-.-": "k", ".-..": "l", "--": "m", "-.": "n", "---": "o", ".--.": "p",
    "--.-": "q", ".-.": "r", "...": "s", "-": "t", "..-": "u", "...-": "v", ".--": "w", "-..-": "x",
    "-.--": "y", "--..": "z", "-----": "0", ".----": "1", "..---": "2", "...--": "3", "....-": "4",
    ".....": "5", "-....": "6", "--...": "7", "---..": "8", "----.": "9", "..--..": "?", ".-.-.-": ".",
    "--..--": ",",
}  # fmt: skip


def undisguised(text: str) -> Iterator[str]:
    """What the text says in disguise, each find for itself. Takes a time linear in the text."""
    yield from _of_bytes(text)
    yield from _of_letters(text)
    for run in _MORSE.findall(text):
        yield _from_morse(run)
    if len(_LEET_WORD.findall(text)) >= _MIN_LEET_WORDS:
        yield _LEET_WORD.sub(lambda found: found[0].translate(_LEET), text)
    for run in _SPACED.findall(text):
        words = re.split(r"\s{2,}", run)
        yield " ".join(re.sub(r"[ .\-_]", "", word) for word in words)
    if len(assigned := _ASSIGNED.findall(text)) > 1:
        yield "".join(double or single for double, single in assigned)
    if _ADDED.search(text):
        yield _ADDED.sub("", text)


# --- bytes ----------------------------------------------------------------------------------------


def _of_bytes(text: str) -> Iterator[str]:
    for run in _BASE64.findall(text):
        yield from _readable(_from_base64(run))
    for run in _BASE32.findall(text):
        yield from _readable(_from_base32(run))
    for run in _HEX.findall(text):
        yield from _readable(bytes.fromhex("".join(run.split())))
    for run in _BINARY.findall(text):
        bits = "".join(run.split())
        yield from _readable(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)))
    for run in _DECIMAL.findall(text):
        numbers = [int(one) for one in re.findall(r"\d+", run)]
        if max(numbers) < 128:
            yield from _readable(bytes(numbers))
    for run in _PERCENT.findall(text):
        yield unquote(run.replace("+", " "))
    for run in _ENTITIES.findall(text):
        yield html.unescape(re.sub(r"\s", "", run))
    for run in _ESCAPES.findall(text):
        yield from _readable(bytes.fromhex(re.sub(r"\\(?:u00|x)", "", run)))


def _from_base64(run: str) -> bytes:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except binascii.Error:
        return b""


def _from_base32(run: str) -> bytes:
    body = run.rstrip("=")
    try:
        return base64.b32decode(body + "=" * (-len(body) % 8))
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


# --- letters --------------------------------------------------------------------------------------


def _distances(word: str) -> tuple[int, ...]:
    """Between neighbours: the same whatever the shift."""
    return tuple((ord(second) - ord(first)) % 26 for first, second in pairwise(word))


_SHIFTED = {_distances(word): word for word in _COMMON if len(word) >= _SHORTEST}
_LENGTHS = {len(word) for word in _SHIFTED.values()}


def _of_letters(text: str) -> Iterator[str]:
    """Sentences whose letters are shifted, turned around, or in pig Latin, by common English words."""
    for sentence in _SENTENCE.findall(text):
        words = [word.lower() for word in _WORD.findall(sentence)]
        if len(words) < _MIN_WORDS or sum(word in _COMMON for word in words) > 1:
            continue
        least = max(2, _LEAST_SHARE * len(words))
        shifts = Counter(
            (ord(word[0]) - ord(plain[0])) % 26
            for word in words
            if len(word) in _LENGTHS and (plain := _SHIFTED.get(_distances(word)))
        )
        for shift, count in shifts.most_common(1):
            if shift and count >= least:
                yield _shifted(sentence, -shift)
        if sum(len(word) > 1 and word[::-1] in _COMMON for word in words) >= least:
            yield sentence[::-1]
            yield _WORD.sub(lambda found: found[0][::-1], sentence)
        if sum(word.endswith("ay") for word in words) >= 0.7 * len(words):
            yield _WORD.sub(lambda found: _from_pig_latin(found[0].lower()), sentence)


def _shifted(text: str, by: int) -> str:
    def moved(found: re.Match[str]) -> str:
        first = ord("a") if found[0].islower() else ord("A")
        return chr((ord(found[0]) - first + by) % 26 + first)

    return re.sub(r"[A-Za-z]", moved, text)


def _from_pig_latin(word: str) -> str:
    """What was moved behind the word is a common word's beginning or, else, the longest that can be."""
    if not word.endswith("ay") or len(word) < 4:
        return word
    stem = word[:-2]
    if stem[-1] in "yw" and stem[0] in "aeiou":
        return stem[:-1]
    sizes = range(min(len(stem), _LONGEST_ONSET), 0, -1)
    turned = [stem[-size:] + stem[:-size] for size in sizes if stem[-size:] in _ONSETS]
    return next((one for one in turned if one in _COMMON), turned[0] if turned else stem)


def _from_morse(run: str) -> str:
    words = re.split(r"\s*[/|]\s*|\s{3,}", run)
    return " ".join("".join(_LETTERS.get(one, "") for one in word.split()) for word in words)
