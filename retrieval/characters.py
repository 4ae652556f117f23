"""Which characters make words, and which spellings of them count as the same, for finding text.

The database makes the search terms, with regular expressions that come from here (migration
`search`); Python uses the same ones to find what to highlight. They name code points, so that no
locale of a database can change them.
"""

import re
import unicodedata

# --- insides of bracket expressions that Postgres and Python read alike ---------------------------

DROPPED = (
    # accents of Latin, Greek, Cyrillic; vowel points of Hebrew and Arabic, which people leave out;
    # what only says how a sign is drawn. Marks of Indic and other scripts are part of the word.
    r"\u00AD\u0300-\u036F\u0483-\u0489\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7"
    r"\u0610-\u061A\u0640\u064B-\u065F\u0670\u06D6-\u06DC\u06DF-\u06E4\u06E7\u06E8\u06EA-\u06ED"
    r"\u1AB0-\u1AFF\u1DC0-\u1DFF\u200B-\u200F\u2060\u20D0-\u20FF\uFE00-\uFE0F\uFE20-\uFE2F\uFEFF"
)
SPACELESS = (
    # scripts without spaces between words, and Hangul, whose words are joined and grow at their ends
    r"\u0E01-\u0E3A\u0E40-\u0E4E\u0E50-\u0E59\u0E80-\u0EFF\u1000-\u1049\u1050-\u109F\u1780-\u17D3"
    r"\u17D7\u17DC-\u17E9\u3005-\u3007\u3021-\u302F\u3031-\u3035\u3041-\u309F\u30A1-\u30FA"
    r"\u30FC-\u312F\u31A0-\u31BF\u31F0-\u31FF\u3400-\u4DBF\u4E00-\u9FFF\uA960-\uA97F\uA9E0-\uA9FE"
    r"\uAA60-\uAA7F\uAC00-\uD7FF\uF900-\uFAFF\U0001B000-\U0001B16F\U00020000-\U0003FFFF"
)
PICTURES = r"\u2600-\u27BF\u2B50-\u2BFF\U0001F000-\U0001F3FA\U0001F400-\U0001FAFF"
SEPARATORS = (
    r"\u0001-\u002F\u003A-\u0040\u005B-\u0060\u007B-\u00A9\u00AB-\u00B1\u00B4\u00B6-\u00B8"
    r"\u00BB\u00BF\u00D7\u00F7\u02C2-\u02C5\u02D2-\u02DF\u037E\u0387\u055A-\u055F\u0589\u058A\u05BE"
    r"\u05C0\u05C3\u05C6\u05F3\u05F4\u0600-\u060F\u061B-\u061F\u066A-\u066D\u06D4\u06DD\u06DE\u06E9"
    r"\u06FD\u06FE\u0700-\u070D\u07F7-\u07F9\u0830-\u083E\u085E\u0964\u0965\u0970\u09F2\u09F3"
    r"\u0AF0\u0AF1\u0C77\u0C84\u0DF4\u0E3F\u0E4F\u0E5A\u0E5B\u0F01-\u0F17\u0F3A-\u0F3D\u0F85\u0FBE-\u0FDA"
    r"\u104A-\u104F\u10FB\u1360-\u1368\u1400\u166D\u166E\u1680\u169B\u169C\u16EB-\u16ED\u1735\u1736"
    r"\u17D4-\u17D6\u17D8-\u17DB\u1800-\u180A\u1944\u1945\u1A1E\u1A1F\u1AA0-\u1AAD\u1B5A-\u1B6A"
    r"\u1BFC-\u1BFF\u1C3B-\u1C3F\u1C7E\u1C7F\u1CC0-\u1CC7\u1CD3\u2000-\u206F\u207A-\u207E\u208A-\u208E"
    r"\u20A0-\u20CF\u2190-\u245F\u2500-\u25FF\u27C0-\u2B4F\u2CF9-\u2CFF\u2E00-\u2E7F"
    r"\u3000-\u3004\u3008-\u3020\u3030\u3036\u3037\u303D-\u303F\u309B\u309C\u30A0\u30FB\uA4FE\uA4FF"
    r"\uA60D-\uA60F\uA673\uA67E\uA6F2-\uA6F7\uA874-\uA877\uA8CE\uA8CF\uA8F8-\uA8FA\uA8FC\uA92E\uA92F"
    r"\uA95F\uA9C1-\uA9CD\uA9DE\uA9DF\uAA5C-\uAA5F\uAADE\uAADF\uAAF0\uAAF1\uABEB\uFD3E\uFD3F\uFE10-\uFE19"
    r"\uFE30-\uFE6B\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\uFFE0-\uFFFD"
    r"\U00010100-\U00010102\U0001F3FB-\U0001F3FF\U000E0001-\U000E007F"
)
WORD_CHARACTER = f"[^{SEPARATORS}{SPACELESS}{PICTURES}]"
RUN = f"([{SPACELESS}]+)|([{PICTURES}])|({WORD_CHARACTER}+)"
"""One run of a folded text: of a script without spaces, a picture, or a word."""

SAME = {"ς": "σ", "ß": "ss"}
"""Letters that are written alike when all letters are small ones."""

_dropped = re.compile(f"[{DROPPED}]")
_word_character = re.compile(WORD_CHARACTER)
_run = re.compile(RUN)


def fold(text: str) -> str:
    """What two spellings of the same have in common; the database's chat_fold() in Python."""
    small = _dropped.sub("", unicodedata.normalize("NFKD", text).lower())
    for letter, same in SAME.items():
        small = small.replace(letter, same)
    return unicodedata.normalize("NFKC", small)


def runs(folded: str) -> list[tuple[str, bool]]:
    """The runs of a folded text, and whether each is of a script without spaces."""
    return [(found[0], found[1] is not None) for found in _run.finditer(folded)]


def is_word_character(character: str) -> bool:
    return _word_character.fullmatch(character) is not None
