"""Names of files that somebody else has given: as they are shown, and never a path of ours."""

import re
import unicodedata

MAX_NAME_CHARS = 255
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, marks of direction, halves of characters
_JOINERS = "\u200c\u200d"  # without which Persian words and emoji would be others
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,10}$")


def safe_name(given: str) -> str:
    """The last part of what may be a path, of characters that are seen; empty where there is nothing.
    A long one keeps its ending."""
    last = re.split(r"[/\\]", given)[-1]
    name = composed(seen(last)).strip().lstrip(".").strip()
    if len(name) <= MAX_NAME_CHARS:
        return name
    ending = found[0] if (found := _ENDING.search(name)) else ""
    return name[: MAX_NAME_CHARS - len(ending)] + ending


def composed(name: str) -> str:
    """NFC: some systems give "é" as two characters, and it is the same name."""
    return unicodedata.normalize("NFC", name)


def seen(name: str) -> str:
    """Without what nobody sees, or turns the direction: "gpj.exe" would read "exe.jpg"."""
    return "".join(c for c in name if c in _JOINERS or unicodedata.category(c) not in _UNSEEN)
