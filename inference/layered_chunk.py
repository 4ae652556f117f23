"""A chunk of a prompt that passes some of the model's layers in each step: layered prefill.

A step in which a chunk passes all layers reads all keys and values that are cached of its prompt,
however few tokens it has: behind 4,000 tokens that alone can take as long as a step of those who write.
A chunk of more tokens that passes a layer or two costs as little as the step has to spare, and reads a
layer's keys once for all of them. Source: Lee et al. 2025, "From Tokens to Layers" (arXiv:2510.08055),
who save experts' weights by it.
"""

from dataclasses import dataclass
from typing import Any

MOST_TOKENS = 64  # of a chunk; of more, a single layer could be too much for a step
LEAST_TOKENS = 16  # of fewer, a layer's keys are read for too little
_SLACK = 0.2  # of a layer that a step may do more than its share, or much of it would be wasted


@dataclass(slots=True)
class LayeredChunk:
    """The next `num_tokens` of a sequence, which have passed `begin` of the model's layers.

    The step that is planned takes them up to layer `end`, exclusive. Only then, and only if that is the
    last one, are they computed. `rows` is what lies between the layers, the runner's own: (1, tokens,
    width). Whoever drops the chunk loses nothing but work: keys are written again.
    """

    num_tokens: int
    num_layers: int
    begin: int = 0
    end: int = 0
    rows: Any = None

    @property
    def is_last(self) -> bool:
        """Whether the planned step ends it."""
        return self.end == self.num_layers

    @property
    def is_through(self) -> bool:
        return self.begin == self.num_layers

    @property
    def worth_tokens(self) -> float:
        """How many tokens through all layers are as much work as the planned step's part of this."""
        return self.num_tokens * (self.end - self.begin) / self.num_layers

    @property
    def passed_tokens(self) -> float:
        """The same of the layers that it has passed."""
        return self.num_tokens * self.begin / self.num_layers

    def plan(self, most_tokens: float) -> None:
        """Take as many layers as are worth so many tokens, one at least."""
        num_layers = max(1, int(most_tokens * self.num_layers / self.num_tokens + _SLACK))
        self.end = min(self.num_layers, self.begin + num_layers)

    def take(self, rows: Any) -> None:
        """The planned step was computed, and left these rows behind its last layer."""
        self.begin, self.rows = self.end, rows


def tokens_of_chunk(num_tokens: int, most_tokens: float, num_layers: int) -> int:
    """How many of the next tokens a chunk has, if a step may do what `most_tokens` through all layers
    are worth: so many that a layer of them is no more than that, if it can be."""
    in_one_layer = int(most_tokens * num_layers) // LEAST_TOKENS * LEAST_TOKENS
    return min(num_tokens, MOST_TOKENS, max(LEAST_TOKENS, in_one_layer))
