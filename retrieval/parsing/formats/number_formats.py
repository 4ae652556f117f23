"""Numbers as a spreadsheet shows them: percent, currencies, thousands, places and leading zeros. Of what
is rarer (fractions, exponents, conditions) the number is told as it is. Pure."""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache

_PIECES = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.'  # _ is a gap as wide as a sign, * fills the cell
    r"|\[\$(?P<currency>[^\]-]*)[^\]]*\]"
    r"|\[(?:black|blue|cyan|green|magenta|red|white|yellow|color\s?\d+)\]"
    r"|(?P<digits>[0#?][0#?,]*(?:\.[0#?]*,*)?|\.[0#?]+)|(?P<literal>[-+%() $€£¥])",
    re.IGNORECASE,
)
_SECTION = re.compile(r'(?:"[^"]*"|\\.|[^;"\\])+')
_MAX_CHARS = 200  # of a format
_MAX_PLACES = 30


@dataclass(frozen=True, slots=True)
class _Section:
    """What stands around the digits, and how these are written. `optional_places` are shown if they are
    not zero."""

    before: str
    after: str
    int_digits: int
    places: int
    optional_places: int
    has_thousands: bool
    exponent: int  # of ten, that the number is multiplied by


def number_text(value: float, number_format: str | None) -> str:
    """As many digits as Excel has, where the format says nothing."""
    plain = f"{value:.15g}" if isinstance(value, float) else str(value)
    sections = _sections(number_format or "General")
    if not sections or not Decimal(plain).is_finite():
        return plain
    index = 1 if value < 0 else 2 if value == 0 else 0
    section = sections[index] if index < len(sections) else sections[0]
    if section is None:
        return plain
    text = _digits(abs(Decimal(plain)), section)
    # A section of its own may tell by its colour alone what is below zero.
    is_told = index == 1 and index < len(sections) and bool({*"-("} & {*section.before})
    sign = "-" if value < 0 and not is_told and text.strip("0.,") else ""
    return f"{sign}{section.before}{text}{section.after}".strip()


def _digits(value: Decimal, section: _Section) -> str:
    places = section.places + section.optional_places
    with localcontext(prec=400):
        scaled = value.scaleb(section.exponent)
        rounded = scaled.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    whole, _, part = f"{rounded:f}".partition(".")
    whole = whole.lstrip("0").rjust(section.int_digits, "0")
    if section.has_thousands:
        whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    kept = part[section.places :].rstrip("0")
    part = part[: section.places] + kept
    return f"{whole}.{part}" if part else whole or ("" if section.before else "0")


@lru_cache(maxsize=500)
def _sections(number_format: str) -> tuple[_Section | None, ...]:
    """For numbers above, below and of zero, as far as they differ. None: what is told as it is."""
    if len(number_format) > _MAX_CHARS:
        return ()
    return tuple(map(_section, _SECTION.findall(number_format)[:3]))


def _section(text: str) -> _Section | None:
    before, digits, after, place, num_percent = "", "", "", 0, 0
    for piece in _PIECES.finditer(text):
        if piece.start() != place:
            return None
        place = piece.end()
        if piece["digits"]:
            if digits:
                return None
            digits = piece["digits"]
            continue
        words = "".join(part for part in piece.groups() if part)
        num_percent += piece["literal"] == "%"
        before, after = (before, after + words) if digits else (before + words, after)
    if place != len(text) or not digits:
        return None
    shown = digits.rstrip(",")  # each one behind the digits leaves out three of them
    whole, _, places = shown.partition(".")
    if len(places) > _MAX_PLACES:
        return None
    return _Section(
        before=before,
        after=after,
        int_digits=whole.count("0"),
        places=places.rfind("0") + 1,
        optional_places=len(places) - places.rfind("0") - 1,
        has_thousands="," in whole,
        exponent=2 * num_percent - 3 * (len(digits) - len(shown)),
    )
