"""All classifiers asked at once about some texts: what they found, and which of them did not answer."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from inference import Caller, EngineError
from moderation.categories import CATEGORIES, Scores, with_parents, worst
from moderation.classifiers.interface import Checkable, Classifier, Closable

logger = logging.getLogger(__name__)
TIMEOUT_S = 60.0
"""So long a classifier may take; a model that is still to be loaded takes some of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one classifier said. `scores` has an entry for each text, of the categories that it knows;
    without it, `error` says why it could not be asked."""

    classifier: str
    took_ms: float
    scores: tuple[Scores, ...] = ()
    error: EngineError | None = None


@dataclass(frozen=True, slots=True)
class Screening:
    """`scores[i]` has a probability of all CATEGORIES for text i: the highest of those that answered,
    and 0 of a category that none of them knows. What follows when some did not is the policy's."""

    scores: tuple[Scores, ...]
    reports: tuple[Report, ...]

    @property
    def failed(self) -> tuple[Report, ...]:
        return tuple(report for report in self.reports if report.error is not None)

    @property
    def has_answer(self) -> bool:
        """Whether any classifier has answered."""
        return len(self.failed) < len(self.reports)


class Screener:
    """Some classifiers as one. Lives on the engine's event loop."""

    def __init__(self, classifiers: Sequence[Classifier], *, timeout_s: float = TIMEOUT_S) -> None:
        self.classifiers = tuple(classifiers)
        self._timeout_s = timeout_s

    async def check(self) -> None:
        """Raises EngineError for the first classifier that can never be asked. Loads no model."""
        for one in self.classifiers:
            if isinstance(one, Checkable):
                await one.check()

    async def screen(self, texts: Sequence[str], caller: Caller) -> Screening:
        """Never raises EngineError: a classifier's is in its report."""
        reports = await self._asked_all(texts, caller)
        nothing: Scores = dict.fromkeys(CATEGORIES, 0.0)
        answers = [report.scores for report in reports if report.error is None]
        scores = tuple(
            with_parents(worst([nothing, *(answer[at] for answer in answers)]))
            for at in range(len(texts))
        )
        return Screening(scores, reports)

    async def _asked_all(self, texts: Sequence[str], caller: Caller) -> tuple[Report, ...]:
        """At once, the first of them without a task of its own: rules alone would need none."""
        if not self.classifiers:
            return ()
        first, *others = (self._asked(one, texts, caller) for one in self.classifiers)
        asking = [asyncio.create_task(each) for each in others]
        try:
            return (await first, *[await each for each in asking])
        finally:
            for each in asking:
                each.cancel()

    async def _asked(self, one: Classifier, texts: Sequence[str], caller: Caller) -> Report:
        began_s = perf_counter()
        scores: tuple[Scores, ...] = ()
        error: EngineError | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                scores = tuple(await one.score(texts, caller))
                assert len(scores) == len(texts)
        except EngineError as known:
            error = known
        except TimeoutError:
            error = _failure(f"It took longer than {self._timeout_s:g} s.")
        except Exception as unknown:
            # A fault of ours in one classifier is not to keep the others from judging.
            logger.exception("%s failed", one.name)
            error = _failure(f"It failed: {type(unknown).__name__}.")
        return Report(one.name, (perf_counter() - began_s) * 1e3, () if error else scores, error)

    async def close(self) -> None:
        for one in self.classifiers:
            if isinstance(one, Closable):
                await one.close()


def _failure(message: str) -> EngineError:
    error = EngineError(message)
    error.code = "classifier_failed"
    return error
