"""What texts hold, by all classifiers that come with the installation: rules, and heads on vectors."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from chat.engine import engine
from chat.off_loop import off_loop
from inference import BUILTIN_EMBEDDING, Caller
from moderation.builtin_rules import BUILT_IN
from moderation.categories import CATEGORIES, RULE_CATEGORIES, Scores, worst
from moderation.normalising import normalised
from moderation.rules import Rule, Rules

if TYPE_CHECKING:
    from moderation.heads import Heads

AT_ONCE = 64  # readings; behind each call others have their turn


async def scores_of(texts: Sequence[str], caller: Caller) -> list[Scores]:
    """A probability of every category for each text; a text is as bad as its worst part.

    Raises EngineError.
    """
    by_rules, read = await off_loop(_prepared, texts)  # a long text takes longer than a step may
    flat = [part for parts in read for part in parts]
    vectors: list[Sequence[float]] = []
    for at in range(0, len(flat), AT_ONCE):
        some = flat[at : at + AT_ONCE]
        found = await engine().embed(BUILTIN_EMBEDDING, some, truncate=True, caller=caller)
        vectors += found.vectors
    by_heads = iter(await off_loop(_by_heads, vectors, flat))
    nothing = dict.fromkeys(CATEGORIES, 0.0)
    return [
        worst([nothing | ruled, *(nothing | dict(next(by_heads)) for _ in parts)])
        for parts, ruled in zip(read, by_rules, strict=True)
    ]


def _prepared(texts: Sequence[str]) -> tuple[list[dict[str, float]], list[list[str]]]:
    from moderation.heads import readings

    normal = [normalised(text) for text in texts]
    read = [readings(one.text) for one in normal]
    return rules().scores(normal), [[one for one in parts if one.strip()] for parts in read]


def _by_heads(vectors: Sequence[Sequence[float]], texts: Sequence[str]) -> Sequence[Scores]:
    return heads().score(vectors, texts)


@cache
def flagged_at() -> dict[str, float]:
    """From which probability on a text counts as of a category, where no policy says otherwise."""
    from moderation.heads import shipped_thresholds

    return dict.fromkeys(RULE_CATEGORIES, 0.5) | dict(shipped_thresholds())


@cache
def heads() -> "Heads":
    from moderation.heads import Heads  # with numpy, for which no web process waits at its start

    return Heads()


def stamp() -> int:
    """Changes whenever the same text might be judged otherwise."""
    return _stamp


def rules() -> Rules:
    """Those that come with the installation, and the operator's."""
    return _rules


def use_rules(own: Iterable[Rule]) -> None:
    """The operator's rules, from now on. Raises BadRule."""
    global _rules, _stamp
    _rules = Rules([*BUILT_IN, *own])
    _stamp += 1


_rules = Rules(BUILT_IN)
_stamp = 0
