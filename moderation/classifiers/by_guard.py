"""Guard models as classifiers: language models that say of a text whether it is safe."""

import asyncio
from collections.abc import Sequence
from functools import partial

from inference import Caller, Engine, EngineError
from moderation.categories import Scores, worst
from moderation.classifiers.guard_asking import Guard, guard_elsewhere, guard_here
from moderation.classifiers.guard_verdicts import NoVerdict, Question
from moderation.classifiers.reading import by_parts

WINDOW_WORDS = 400
AT_ONCE = 8  # questions; the engine puts them into one batch
INSIST_FROM = 0.1
"""Of texts that are found safe with a doubt of so much, the guard is asked what it is in doubt about."""


class GuardClassifier:
    """One guard. Its beginning is the same for all texts of a caller, and read from the cache."""

    def __init__(self, engine: Engine, model: str, family: str = "") -> None:
        """`family` is one of FAMILIES, where neither its template nor its name tells."""
        self.name = f"guard:{model}"
        self._engine = engine
        self._model = model
        self._family = family
        self._known: Guard | None = None

    async def check(self) -> None:
        await self._guard()

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        guard = await self._guard()
        return await by_parts(
            texts, WINDOW_WORDS, partial(self._scores, guard, caller), guard.family.nothing
        )

    async def _guard(self) -> Guard:
        """Found once. Raises ModelError or WrongKind."""
        if self._known is None:
            is_elsewhere = self._engine.is_upstream(self._model)
            make = guard_elsewhere if is_elsewhere else guard_here
            self._known = await make(self._engine, self._model, self._family)
        return self._known

    async def _scores(self, guard: Guard, caller: Caller, parts: list[str]) -> list[Scores]:
        places = asyncio.Semaphore(AT_ONCE)

        async def ask(part: str, question: Question) -> Scores:
            async with places:
                return await self._judged(guard, part, question, caller)

        asked = [
            [asyncio.create_task(ask(part, question)) for question in guard.family.questions]
            for part in parts
        ]
        tasks = [task for own in asked for task in own]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return [worst([task.result() for task in own]) for own in asked]

    async def _judged(self, guard: Guard, text: str, question: Question, caller: Caller) -> Scores:
        family = guard.family
        try:
            steps = await guard.ask(text, question, caller)
            verdict = family.verdict(steps)
        except NoVerdict as error:
            raise EngineError(f"'{self._model}' answers as no guard does: {error}") from None
        named = question.about or verdict.named
        if verdict.is_safe and verdict.unsafe >= INSIST_FROM and family.insisted:
            lead = "".join(step.text for step in steps[: verdict.at]).rstrip(" ")
            steps = await guard.ask(text, question, caller, begun=lead + family.insisted)
            named = family.named("".join(step.text for step in steps))
        return dict.fromkeys(named, verdict.unsafe)
