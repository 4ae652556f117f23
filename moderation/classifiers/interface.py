"""What is asked of a classifier, whatever stands behind it."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from inference import Caller
from moderation.categories import Scores


class Classifier(Protocol):
    """`name` is how configuration, traces and decisions call it."""

    @property
    def name(self) -> str: ...

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        """For each text, in their order, a probability of every category that it knows, and no others.

        All of a text counts, however long it is. Raises EngineError where it cannot be asked.
        """
        ...


@runtime_checkable
class Checkable(Protocol):
    """A classifier that can be set up wrongly."""

    async def check(self) -> None:
        """Raises EngineError where its files show that it can never be asked. Loads no model."""
        ...


@runtime_checkable
class Closable(Protocol):
    """A classifier that keeps connections open."""

    async def close(self) -> None: ...
