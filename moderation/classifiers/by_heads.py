"""The heads on the built-in embedding model as a classifier: cheap, and always there."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from inference import Caller, Engine
from moderation.categories import Scores
from moderation.classifiers.reading import are_short, for_texts, in_thread
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.normalising import judged
from moderation.windows import Read, read

if TYPE_CHECKING:
    from moderation.heads import Heads

AT_ONCE = 64  # parts of texts; behind each call others have their turn

_Asked = tuple[Sequence[str], "asyncio.Future[list[Scores]]"]


class HeadClassifier:
    """Knows the fifteen categories that have no form, in English best; see `moderation/heads`."""

    name = "heads"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: list[_Asked] = []
        self._working: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

    async def check(self) -> None:
        self._engine.require(HEADS_ADAPTER.name, "embedding")

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        """Short texts that are asked about in the same turn of the loop are judged together: where sixty
        questions come at once, a request, and a product of matrices, of each costs more than they do."""
        if caller.priority != "interactive" or not are_short(texts):
            return await self._score(texts, caller)
        answer: asyncio.Future[list[Scores]] = asyncio.get_running_loop().create_future()
        if not self._asked:
            working = asyncio.create_task(self._score_asked())
            self._working.add(working)
            working.add_done_callback(self._working.discard)
        self._asked.append((texts, answer))
        return await answer

    async def _score_asked(self) -> None:
        """Also for those who have left meanwhile. They are nobody's in particular: each is a sentence or
        two of somebody whose answers are counted."""
        asked, self._asked = self._asked, []
        try:
            every = [text for texts, _ in asked for text in texts]
            scores = await self._score(every, Caller(), in_turn=True)
        except asyncio.CancelledError:
            for _, future in asked:
                future.cancel()
            raise
        except Exception as error:
            for _, future in asked:
                if not future.done():
                    future.set_exception(error)
            return
        at = 0
        for texts, future in asked:
            if not future.done():
                future.set_result(scores[at : at + len(texts)])
            at += len(texts)

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
