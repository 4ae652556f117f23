"""Any sequence classifier of the hub, run by the engine: its labels become our categories."""

from collections.abc import Mapping, Sequence

from inference import Caller, Engine, LabelScore, ModelRefused
from moderation.categories import Scores
from moderation.classifiers.labels import meaning_of
from moderation.classifiers.reading import by_parts

Meanings = Mapping[str, tuple[str, ...]]
"""The categories of each label; none where it means nothing that is moderated."""

_TOKENS_PER_WORD = 3  # of a window, so that text with few spaces still fits


class LabelClassifier:
    """Softmax or sigmoid as the model's `problem_type` says: the engine sees to it."""

    def __init__(self, engine: Engine, model: str, overrides: Meanings | None = None) -> None:
        """`overrides` say what labels mean, where the table knows it not or otherwise."""
        self.name = f"classifier:{model}"
        self._engine = engine
        self._model = model
        self._overrides = overrides or {}

    async def check(self) -> None:
        await self._meanings()

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        meanings = await self._meanings()
        layout = await self._engine.encoder_layout(self._model)
        num_words = max(1, layout.window_tokens // _TOKENS_PER_WORD)

        async def score(parts: list[str]) -> list[Scores]:
            found = await self._engine.classify(self._model, parts, caller=caller)
            return [_scores(labels, meanings) for labels in found.labels]

        return await by_parts(texts, num_words, score, _scores((), meanings))

    async def _meanings(self) -> Meanings:
        """Raises ModelRefused where no label is known, with a sentence for the operator."""
        self._engine.require(self._model, "classifier")
        labels = (await self._engine.encoder_layout(self._model)).labels
        has = f"'{self._model}' has the labels {', '.join(labels)}"
        if strange := sorted(set(self._overrides) - set(labels)):
            raise ModelRefused(f"{has}, and no {strange[0]}.")
        known = {
            label: self._overrides.get(label, meaning_of(label, self._model)) for label in labels
        }
        meanings = {label: found for label, found in known.items() if found}
        if not meanings:
            raise ModelRefused(
                f"{has}, none of which is known to stand for a category."
                f" Say it: classifier:{self._model}?LABEL=CATEGORY"
            )
        return meanings


def _scores(labels: Sequence[LabelScore], meanings: Meanings) -> Scores:
    """A category that several labels stand for is as likely as the likeliest."""
    found = {category: 0.0 for own in meanings.values() for category in own}
    for one in labels:
        for category in meanings.get(one.label, ()):
            found[category] = max(found[category], one.score)
    return found
