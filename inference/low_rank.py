"""What an adapter adds to a layer's outputs, by torch's operations. Imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear


@dataclass(frozen=True, slots=True)
class Part:
    """A (rank, inputs) and scale · B (outputs, rank), and which outputs of the layer they add to."""

    columns: slice
    a: Tensor
    b: Tensor


class LowRankSum:
    """An adapter in one layer, which may be several of the model's in one product.

    `down` is all of their A, (ranks, inputs). `ups` are their B, each with what it reads of `down`'s
    product and the outputs of the layer that it adds to.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.down = torch.cat([part.a for part in parts])
        self.ups: list[tuple[slice, slice, Tensor]] = []
        end = 0
        for part in parts:
            start, end = end, end + len(part.a)
            self.ups.append((slice(start, end), part.columns, part.b))

    def add(self, rows: Tensor, sums: Tensor) -> None:
        """Add to `sums` (rows, outputs), in place, what the adapter makes of `rows` (rows, inputs)."""
        thin = linear(rows.to(self.down.dtype), self.down)
        for ranks, columns, up in self.ups:
            sums[:, columns].add_(linear(thin[:, ranks], up))

    @property
    def num_bytes(self) -> int:
        return self.down.nbytes + sum(up.nbytes for _, _, up in self.ups)
