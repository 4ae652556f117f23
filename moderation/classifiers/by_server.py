"""A moderation endpoint of OpenAI's shape on another server as a classifier."""

from collections.abc import Sequence
from typing import Any

from inference import Caller, EngineError, JsonServer
from moderation.categories import Scores
from moderation.classifiers.labels import meaning_of
from moderation.classifiers.reading import by_parts
from moderation.classifiers.spec import ModerationServer

# "For higher accuracy, try splitting long pieces of text into smaller chunks each less than 2,000
# characters." https://platform.openai.com/docs/guides/moderation
WINDOW_WORDS = 300
AT_ONCE = 32  # texts in a request


class ServerClassifier:
    """Texts leave this machine. Which categories it knows is told by its answers."""

    def __init__(self, spec: ModerationServer) -> None:
        self._model = spec.model
        self._server = JsonServer(
            f"{spec.url}/moderations", api_key=spec.api_key, timeout_s=spec.timeout_s
        )
        self.name = f"server:{self._server.host}"

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        return await by_parts(texts, WINDOW_WORDS, self._score, {})

    async def _score(self, parts: list[str]) -> list[Scores]:
        found: list[Scores] = []
        for at in range(0, len(parts), AT_ONCE):
            some = parts[at : at + AT_ONCE]
            body: dict[str, Any] = {"input": some}
            answer = await self._server.post(body | ({"model": self._model} if self._model else {}))
            try:
                own = [_scores(result) for result in answer["results"]]
            except (TypeError, LookupError, ValueError, AttributeError):
                own = []
            if len(own) != len(some):
                raise EngineError(f"{self._server.host} answers in a form that is not understood.")
            found += own
        return found

    async def close(self) -> None:
        await self._server.close()


def _scores(result: Any) -> Scores:
    """Of `category_scores`; where there are none, of `categories`, by yes and no."""
    found: dict[str, float] = {}
    for label, score in (result.get("category_scores") or result["categories"]).items():
        if not 0 <= float(score) <= 1:
            raise ValueError("a score is no probability")
        for category in meaning_of(label) or ():
            found[category] = max(found.get(category, 0.0), float(score))
    return found
