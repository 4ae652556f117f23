"""The heads on the built-in embedding model as a classifier: cheap, and always there."""

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from inference import BUILTIN_EMBEDDING, Caller, Engine
from moderation.categories import HEAD_CATEGORIES, Scores
from moderation.classifiers.reading import by_parts, in_thread
from moderation.windows import WINDOW_WORDS

if TYPE_CHECKING:
    from moderation.heads import Heads

AT_ONCE = 64  # parts of texts; behind each call others have their turn
_NOTHING = dict.fromkeys(HEAD_CATEGORIES, 0.0)


class HeadClassifier:
    """Knows the fifteen categories that have no form, in English best; see `moderation/heads`."""

    name = "heads"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def check(self) -> None:
        self._engine.require(BUILTIN_EMBEDDING, "embedding")

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        return await by_parts(texts, WINDOW_WORDS, partial(self._score, caller), _NOTHING)

    async def _score(self, caller: Caller, parts: list[str]) -> list[Scores]:
        found: list[Scores] = []
        for at in range(0, len(parts), AT_ONCE):
            some = parts[at : at + AT_ONCE]
            embedded = await self._engine.embed(
                BUILTIN_EMBEDDING, some, truncate=True, caller=caller
            )
            found += await in_thread(_scores, embedded.vectors, some)
        return found


def _scores(vectors: Sequence[Sequence[float]], parts: Sequence[str]) -> list[Scores]:
    return _heads().score(vectors, parts)


@cache
def _heads() -> "Heads":
    from moderation.heads import Heads  # with numpy, for which no web process waits at its start

    return Heads()
