"""What texts hold, by all classifiers that are configured; the one place where they are made."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import cache

from django.conf import settings

from chat.engine import engine
from inference import Caller, Engine, EngineError
from moderation.builtin_rules import BUILT_IN
from moderation.categories import RULE_CATEGORIES, Scores
from moderation.classifiers.by_rules import RuleClassifier
from moderation.classifiers.making import made
from moderation.classifiers.screener import Screener, Screening
from moderation.classifiers.spec import BuiltIn
from moderation.rules import Rule, Rules

_made: tuple[Engine, Screener] | None = None
_by_rules = RuleClassifier()
_stamp = 0


def is_on() -> bool:
    return bool(settings.MODERATION)


def screener() -> Screener:
    """One for as long as there is the engine."""
    global _made
    now = engine()
    if _made is None or _made[0] is not now:
        _made = now, made(settings.MODERATION, now, _by_rules)
    return _made[1]


async def close_screener() -> None:
    """Hang up on other servers; a later `screener()` makes a new one."""
    global _made
    if _made is not None:
        closing, _made = _made[1], None
        await closing.close()


async def screen(texts: Sequence[str], caller: Caller) -> Screening:
    """The same with what every classifier said, and which of them could not be asked."""
    return await screener().screen(texts, caller)


async def scores_of(texts: Sequence[str], caller: Caller) -> list[Scores]:
    """A probability of every category for each text; a text is as bad as its worst part.

    Raises EngineError where a classifier could not be asked: whoever asks for scores is not to take what
    nobody looked for as absent.
    """
    screening = await screen(texts, caller)
    for report in screening.failed:
        assert report.error is not None
        raise report.error
    return list(screening.scores)


@cache
def flagged_at() -> dict[str, float]:
    """From which probability on a text counts as of a category, where no policy says otherwise."""
    from moderation.heads import shipped_thresholds  # with numpy: no web process waits for it

    return dict.fromkeys(RULE_CATEGORIES, 0.5) | dict(shipped_thresholds())


# --- rules ----------------------------------------------------------------------------------------


def stamp() -> int:
    """Changes whenever the same text might be judged otherwise."""
    return _stamp


def rules() -> Rules:
    """Those that come with the installation, and the operator's."""
    return _by_rules.rules


def found_by_rules(text: str) -> Scores:
    """What they find in it, also in disguise."""
    return _by_rules.found(text)


def use_rules(own: Iterable[Rule]) -> None:
    """The operator's rules, from now on. Raises BadRule, and goes on with those before."""
    global _stamp
    _by_rules.use([*BUILT_IN, *own])
    _stamp += 1


# --- at the start ---------------------------------------------------------------------------------


def problem() -> str | None:
    """Why the configured classifiers could never be asked, in a sentence. Runs a loop of its own."""
    if all(isinstance(spec, BuiltIn) for spec in settings.MODERATION):
        return None
    try:
        asyncio.run(check(Engine(settings.ENGINE)))
    except EngineError as error:
        return f"VITRINE_MODERATION: {error}"
    return None


async def check(engine: Engine) -> None:
    """Raises EngineError. Loads no model."""
    checked = made(settings.MODERATION, engine)
    try:
        await checked.check()
    finally:
        await checked.close()
