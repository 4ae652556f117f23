"""Drawing a token by our own kernels, in one pass over a row: see draw.c."""

from ctypes import CDLL

import torch
from torch import Tensor

from inference.native.kernels import kernels

MOST_CANDIDATES = 4096


def can_draw(rows: Tensor) -> bool:
    """Whether there are kernels for such rows: (rows, vocab)."""
    is_here = rows.device.type == "cpu" and rows.dtype == torch.float32
    return is_here and rows.numel() > 0 and kernels() is not None


def log_totals(rows: Tensor) -> Tensor:
    """The logarithm of each row's sum of exp. rows: (rows, vocab) -> (rows, 1)."""
    library, rows = _for(rows)
    totals = torch.empty(len(rows), 1)
    library.log_totals(rows.data_ptr(), *rows.shape, totals.data_ptr(), torch.get_num_threads())
    return totals


def candidates(rows: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """The `num` largest values of each row and their ids, in no order. rows: (rows, vocab); (rows, num)
    twice. Which of the tokens that equal the last one are in is left open."""
    assert 0 < num <= min(MOST_CANDIDATES, rows.shape[1])
    library, rows = _for(rows)
    values = torch.empty(len(rows), num)
    ids = torch.empty(len(rows), num, dtype=torch.int64)
    library.candidates(
        *(rows.data_ptr(), *rows.shape, num, values.data_ptr(), ids.data_ptr()),
        torch.get_num_threads(),
    )
    return values, ids


def draw_among_all(rows: Tensor, seeds: Tensor, positions: Tensor) -> Tensor:
    """The id whose value and Gumbel noise are the most together; the noise is that of sampler.py.

    rows: (rows, vocab); seeds and positions: (rows,) int64 -> (rows,) int64.
    """
    library, rows = _for(rows)
    ids = torch.empty(len(rows), dtype=torch.int64)
    library.draw_among_all(
        *(rows.data_ptr(), *rows.shape, seeds.data_ptr(), positions.data_ptr(), ids.data_ptr()),
        torch.get_num_threads(),
    )
    return ids


def _for(rows: Tensor) -> tuple[CDLL, Tensor]:
    library = kernels()
    assert library is not None
    return library, rows.contiguous()
