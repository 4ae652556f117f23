"""What an adapter adds to a layer's outputs, by our own kernel: see low_rank.c."""

import logging
from collections.abc import Sequence
from ctypes import byref
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from inference.low_rank import LowRankSum, Part
from inference.native.kernels import TYPES, LowRank, Up, kernels

logger = logging.getLogger(__name__)
_WIDTH = 32  # outputs that lie together
_MAX_ERROR = {torch.float32: 1e-5, torch.bfloat16: 5e-3}  # relative; the result is rounded once


class NativeLowRankSum(LowRankSum):
    """Several times as fast for few rows as torch's products, each of which takes longer to begin than
    to compute; and a row's sums are the same beside any others.

    Raises NotImplementedError where there are no kernels.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__(parts)
        library = kernels()
        if library is None:
            raise NotImplementedError("there are no kernels for this machine")
        self._add = library.add_low_rank
        self.down = self.down.contiguous()
        self.ups = [(ranks, columns, _in_blocks(up)) for ranks, columns, up in self.ups]
        of_ups = [
            Up(up.data_ptr(), ranks.start, up.shape[1], columns.start, columns.stop - columns.start)
            for ranks, columns, up in self.ups
        ]
        self._ups = (Up * len(of_ups))(*of_ups)
        num_ranks, num_inputs = self.down.shape
        self._low_rank = LowRank(
            *(self.down.data_ptr(), self._ups, num_inputs, num_ranks, len(of_ups)),
            TYPES[self.down.dtype],
        )

    def add(self, rows: Tensor, sums: Tensor) -> None:
        if rows.dtype not in TYPES or sums.dtype not in TYPES:
            raise TypeError(f"there is no kernel for {rows.dtype} and {sums.dtype}")
        rows = rows if rows.stride(1) == 1 else rows.contiguous()
        assert sums.stride(1) == 1
        self._add(
            *(byref(self._low_rank), rows.data_ptr(), len(rows), rows.stride(0) * rows.itemsize),
            *(TYPES[rows.dtype], sums.data_ptr(), sums.stride(0) * sums.itemsize),
            *(TYPES[sums.dtype], torch.get_num_threads()),
        )


def make_sum(parts: Sequence[Part]) -> LowRankSum:
    """By our kernel where it computes the same, else by torch."""
    part = parts[0]
    is_ours = part.a.device.type == "cpu" and part.a.dtype in TYPES
    if is_ours and is_sound(part.a.dtype):
        return NativeLowRankSum(parts)
    return LowRankSum(parts)


@cache
def is_sound(dtype: torch.dtype) -> bool:
    """Whether the kernel computes what torch does: tried with sizes that fill no block."""
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    parts = [
        Part(slice(0, 70), random(5, 90), random(70, 5)),
        Part(slice(75, 110), random(3, 90), random(35, 3)),
    ]
    for num_rows in (1, 3, 9):
        rows, sums = random(num_rows, 90), random(num_rows, 112)
        found, expected = sums.clone(), sums.double()
        LowRankSum([Part(p.columns, p.a.double(), p.b.double()) for p in parts]).add(rows, expected)
        try:
            NativeLowRankSum(parts).add(rows, found)
        except NotImplementedError:
            return False
        error = (found - expected).norm() / expected.norm()
        if not error <= _MAX_ERROR[dtype]:
            logger.warning("the kernel for adapters is wrong on this processor by %.1e", error)
            return False
    return True


def _in_blocks(up: Tensor) -> Tensor:
    """(outputs, rank) -> (blocks, rank, _WIDTH), padded by 0."""
    padded = pad(up, (0, 0, 0, -len(up) % _WIDTH))
    return padded.view(-1, _WIDTH, up.shape[1]).transpose(1, 2).contiguous()
