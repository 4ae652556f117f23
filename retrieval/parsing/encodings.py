"""Bytes to text, where nobody has said in which encoding they are."""

import codecs
import re

from retrieval.parsing.errors import Unreadable

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*(?:["']\s*)?([A-Za-z0-9_:.-]{2,40})""")
_SAMPLE_BYTES = 32_768
# A guess between these is good for a few lines; between all that Python knows it is not.
# The more usual first: they win where two are about as likely.
_EIGHT_BIT = ["cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"]
_MULTI_BYTE = ["shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
_CONTROLS = bytes(sorted({*range(32)} - set(b"\t\n\v\f\r\x1b")))
_UNSUPPORTED = (
    "This kind of file cannot be read. Text, PDF, office files, web pages and e-mail can."
)


def decoded(data: bytes) -> str:
    """By its mark, else UTF-8, UTF-16, what the text itself declares, else the best guess.

    Raises Unreadable ("unsupported_type") for what is no text.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    sample = data[:_SAMPLE_BYTES]
    if b"\0" in sample:
        return _without_mark(data, sample)
    if len(sample) - len(sample.translate(None, _CONTROLS)) > max(3, len(sample) // 50):
        raise Unreadable("unsupported_type", _UNSUPPORTED)
    for encoding in ("utf-8", _declared(sample)):
        if encoding and (text := _strictly(data, encoding)) is not None:
            return text
    if _is_nearly_utf8(sample):
        return data.decode("utf-8", "replace")
    return data.decode(_guess(sample), "replace")


def _without_mark(data: bytes, sample: bytes) -> str:
    """UTF-16: of Latin letters, spaces and line ends one byte of two is 0, and always the same one."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros > 20 * others and zeros * 25 > len(sample):
            text = _strictly(data[: len(data) // 2 * 2], encoding)
            if text is not None:
                return text
    raise Unreadable("unsupported_type", _UNSUPPORTED)


def _declared(sample: bytes) -> str:
    """What an HTML or XML head says, if Python knows it as an encoding of text."""
    found = _DECLARED.search(sample[:2048])
    try:
        info = codecs.lookup(found[1].decode()) if found else None
    except LookupError:
        return ""
    return info.name if info is not None and getattr(info, "_is_text_encoding", True) else ""


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, ValueError):
        return None


def _is_nearly_utf8(sample: bytes) -> bool:
    """One damaged place does not make a UTF-8 file something else."""
    text = sample.decode("utf-8", "replace")
    num_bad = text.count("\ufffd")
    num_good = sum(char > "\x7f" for char in text) - num_bad
    return num_good > 10 * num_bad


def _guess(sample: bytes) -> str:
    from charset_normalizer import CharsetMatch, from_bytes

    def rank(match: CharsetMatch) -> tuple[float, float, int]:
        usual = (*_MULTI_BYTE, *_EIGHT_BIT)
        return round(match.chaos, 1), -round(match.coherence, 1), usual.index(match.encoding)

    for candidates in (_MULTI_BYTE, _EIGHT_BIT):
        matches = from_bytes(sample, cp_isolation=candidates, enable_fallback=False)
        if len(matches):
            return min(matches, key=rank).encoding
    return "cp1252"
