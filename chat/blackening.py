"""What rules have matched, taken out of a text: a black sign stands in its place."""

from collections.abc import Sequence
from typing import Any

from chat import moderating
from moderation.categories import RULE_CATEGORIES

BLACK = "[█"


def matches(text: str) -> Sequence[Any]:
    return moderating.rules().find(text)


def can_be_taken_out(text: str, category: str, at: float) -> bool:
    """Where rules have matched, and find no more in what is left: what is in disguise has no place."""
    found = [one for one in matches(text) if one.category == category and one.probability >= at]
    left = blackened(text, [(one.start, one.end) for one in found])
    return bool(found) and moderating.found_by_rules(left).get(category, 0.0) < at


def without_secrets(text: str) -> str:
    """Nobody who reviews a text needs the key that is in it, or the number of a card."""
    found = [one for one in matches(text) if one.category in RULE_CATEGORIES]
    return blackened(text, [(one.start, one.end) for one in found])


def blackened(text: str, spans: Sequence[tuple[int, int]], begin: int = 0) -> str:
    """The text from `begin` on, a sign in place of each span, which begins with BLACK."""
    pieces, at = [], begin
    for start, end in _joined(spans):
        start = max(start, begin)
        if start < end:
            pieces += [text[at:start], f"{BLACK}{'█' * min(7, end - start)}]"]
            at = end
    return "".join([*pieces, text[at:]])


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In their order, those that overlap as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
