"""The rows of a chunk that passes some layers of a step: see layered_chunk. Imports torch."""

import torch
from torch import Tensor

from inference.attention import StepContext
from inference.layered_chunk import LayeredChunk
from inference.spans import Span


class LayeredRows:
    """The rows of a chunk in one step: the last of all, there between `begin` and `end` only."""

    def __init__(self, chunk: LayeredChunk, context: StepContext) -> None:
        self.chunk = chunk
        self.left: Tensor | None = None  # behind the last layer of this step
        self._context = context
        self._all = context.spans
        self._num_others = sum(span.num_tokens for span in self._all[:-1])

    def enter(self, layer: int, hidden: Tensor) -> Tensor:
        """What goes into a layer: (1, tokens, width), of as many tokens as the spans then have."""
        chunk = self.chunk
        if layer == 0 and chunk.begin > 0:
            hidden = self._without(hidden)
        elif layer == chunk.begin > 0:
            hidden = torch.cat((hidden, chunk.rows), dim=1)
            self._has(self._all)
        elif layer == chunk.end:
            self.left = hidden[:, self._num_others :].clone()
            hidden = self._without(hidden)
        # Kernels read as many rows as they are told of.
        num_rows = sum(span.num_tokens for span in self._context.spans)
        assert hidden.shape[:2] == (1, num_rows), "rows have gone astray between two layers"
        return hidden

    def _without(self, hidden: Tensor) -> Tensor:
        self._has(self._all[:-1])
        return hidden[:, : self._num_others]

    def _has(self, spans: list[Span]) -> None:
        self._context.spans, self._context.parts = spans, None
