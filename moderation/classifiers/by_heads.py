"""The heads on the built-in embedding model as a classifier: cheap, and always there."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from inference import Caller, Engine, EngineError, Priority
from moderation.categories import Scores
from moderation.classifiers.reading import SHORT_CHARS, are_short, for_texts, in_thread
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.normalising import judged
from moderation.windows import Read, read

if TYPE_CHECKING:
    from moderation.heads import Heads

AT_ONCE = 64  # parts of texts; behind each call others have their turn

TOGETHER_CHARS = 16 * SHORT_CHARS
"""Of what is read in one turn of the loop. More takes tens of milliseconds, and goes to a thread."""


@dataclass(frozen=True, slots=True)
class _Asked:
    texts: Sequence[str]
    caller: Caller
    answer: "asyncio.Future[list[Scores]]"


class HeadClassifier:
    """Knows the fifteen categories that have no form, in English best; see `moderation/heads`."""

    name = "heads"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: dict[Priority, list[_Asked]] = {}
        self._working: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

    async def check(self) -> None:
        self._engine.require(HEADS_ADAPTER.name, "embedding")

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        """Short texts of a class that are asked about in the same turn of the loop are judged together:
        where sixty questions come at once, a request, and a product of matrices, of each costs more than
        they do."""
        if caller.priority == "background" or not are_short(texts):
            return await self._score(texts, caller)
        answer: asyncio.Future[list[Scores]] = asyncio.get_running_loop().create_future()
        if caller.priority not in self._asked:
            self._asked[caller.priority] = []
            working = asyncio.create_task(self._score_asked(caller.priority))
            self._working.add(working)
            working.add_done_callback(self._working.discard)
        self._asked[caller.priority].append(_Asked(texts, caller, answer))
        return await answer

    async def _score_asked(self, priority: Priority) -> None:
        """Also for those who have left meanwhile, as long as anybody waits."""
        asked = self._asked.pop(priority)
        working = asyncio.current_task()
        assert working is not None

        def stop_for_nobody(_: object) -> None:
            if all(one.answer.cancelled() for one in asked):
                working.cancel()

        for one in asked:
            one.answer.add_done_callback(stop_for_nobody)
        try:
            await self._answer(asked)
        except asyncio.CancelledError:
            for one in asked:
                one.answer.cancel()
            raise

    async def _answer(self, asked: Sequence[_Asked]) -> None:
        every = [text for one in asked for text in one.texts]
        in_turn = are_short(every, TOGETHER_CHARS)
        try:
            scores = await self._score(every, _all_of(asked), in_turn=in_turn)
        except EngineError as error:
            _fail(asked, error)
        except Exception as error:
            if len(asked) == 1:
                _fail(asked, error)
                return
            # A fault of ours, which one of the texts may have met: the others are judged.
            await asyncio.gather(*(self._answer([one]) for one in asked))
        else:
            at = 0
            for one in asked:
                if not one.answer.done():
                    one.answer.set_result(scores[at : at + len(one.texts)])
                at += len(one.texts)

    async def _score(
        self, texts: Sequence[str], caller: Caller, *, in_turn: bool = False
    ) -> list[Scores]:
        """`in_turn`: many short texts of many, which would each have been read on the loop."""
        texts_read = _read(texts) if in_turn else await for_texts(texts, _read, texts)
        parts = list(dict.fromkeys(part for text in texts_read for part in text if part.strip()))
        vectors: dict[str, Sequence[float]] = {}
        for at in range(0, len(parts), AT_ONCE):
            some = parts[at : at + AT_ONCE]
            embedded = await self._engine.embed(
                HEADS_ADAPTER.name, some, truncate=True, caller=caller
            )
            vectors |= zip(some, embedded.vectors, strict=True)
        if not _heads.cache_info().currsize:  # the heads have to be read first
            return await in_thread(_scores, texts_read, vectors)
        if in_turn:
            return _scores(texts_read, vectors)
        return await for_texts(texts, _scores, texts_read, vectors)


def _all_of(asked: Sequence[_Asked]) -> Caller:
    """As many as they are: a share for each of them, beside those who ask for much by themselves."""
    weights = {one.caller.user: one.caller.weight for one in asked}
    return Caller(weight=sum(weights.values()), priority=asked[0].caller.priority)


def _fail(asked: Sequence[_Asked], error: Exception) -> None:
    for one in asked:
        if not one.answer.done():
            one.answer.set_exception(error)


def _read(texts: Sequence[str]) -> list[Read]:
    return [read(judged(text)) for text in texts]


def _scores(texts: Sequence[Read], vectors: Mapping[str, Sequence[float]]) -> list[Scores]:
    import numpy as np

    return _heads().judge(
        texts, {part: np.asarray(vector, np.float32) for part, vector in vectors.items()}
    )


@cache
def _heads() -> "Heads":
    from moderation.heads import Heads  # with numpy, for which no web process waits at its start

    return Heads()
