"""The heads on the built-in embedding model as a classifier: cheap, and always there."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from inference import Caller, Engine
from moderation.categories import Scores
from moderation.classifiers.reading import for_texts, in_thread
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.normalising import judged
from moderation.windows import Read, read

if TYPE_CHECKING:
    from moderation.heads import Heads

AT_ONCE = 64  # parts of texts; behind each call others have their turn


class HeadClassifier:
    """Knows the fifteen categories that have no form, in English best; see `moderation/heads`."""

    name = "heads"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def check(self) -> None:
        self._engine.require(HEADS_ADAPTER.name, "embedding")

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        texts_read = await for_texts(texts, _read, texts)
        parts = list(dict.fromkeys(part for text in texts_read for part in text if part.strip()))
        vectors: dict[str, Sequence[float]] = {}
        for at in range(0, len(parts), AT_ONCE):
            some = parts[at : at + AT_ONCE]
            embedded = await self._engine.embed(
                HEADS_ADAPTER.name, some, truncate=True, caller=caller
            )
            vectors |= zip(some, embedded.vectors, strict=True)
        if _heads.cache_info().currsize:
            return await for_texts(texts, _scores, texts_read, vectors)
        return await in_thread(_scores, texts_read, vectors)  # the heads have to be read first


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
