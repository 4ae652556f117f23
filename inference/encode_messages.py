"""What crosses to a worker and back when texts become vectors or scores; see `messages`."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from inference.pickling import pickled_by_fields
from inference.priority import Priority


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Caller:
    """For whom something is computed.

    `user` is the fair-share key, opaque to the engine; of two who ask for all they can get, one of
    twice the `weight` gets twice as much.
    """

    user: str = ""
    weight: float = 1.0
    priority: Priority = "interactive"


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class EncoderInput:
    """One text, or a pair of texts, as token ids with their special tokens.

    `ids` is an array of C ints. `type_ids` tells the two texts of a pair apart, a byte per token;
    empty where all are of the first.
    """

    ids: "array[int]"
    type_ids: bytes = b""

    def __len__(self) -> int:
        return len(self.ids)


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class EncodeRequest:
    """Some inputs for an embedding model, a classifier or a reranker.

    `dimensions` asks for vectors that are cut to so many components and scaled to length 1 again.
    `adapter` is the name of the one that the inputs go through, if they do. `is_replay`: a worker had
    accepted it and died, so that no other one is too full for it.
    """

    request_id: str
    inputs: tuple[EncoderInput, ...]
    dimensions: int | None = None
    caller: Caller = field(default_factory=Caller)
    adapter: str = ""
    is_replay: bool = False

    @property
    def num_tokens(self) -> int:
        return sum(map(len, self.inputs))

    @property
    def is_chore(self) -> bool:
        """Of the class that nobody waits for."""
        return self.caller.priority == "background"


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Encoded:
    """The only answer to an EncodeRequest that went well.

    `values` are float32, row behind row, one of `width` for each input in its order: vectors,
    probabilities of the labels, or logits of relevance.
    """

    values: "array[float]"
    width: int

    def rows(self) -> "Iterator[array[float]]":
        for start in range(0, len(self.values), self.width):
            yield self.values[start : start + self.width]
