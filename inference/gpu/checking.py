"""The kernels with each of their results compared: with attention in float32, over the same pages."""

from typing import Any

import torch
from torch import Tensor

from inference.attention import attend_plainly, causal_mask
from inference.block_pool import BLOCK_TOKENS
from inference.gpu import attention as kernels
from inference.gpu.paged_step import PagedStep
from inference.paged_kv import gathered


class CheckedKernels:
    """In place of `inference.gpu.attention`. Slow: it waits for the device, sequence by sequence."""

    def __init__(self) -> None:
        self._errors: list[Tensor] = []

    def attend(
        self,
        step: PagedStep,
        pages: tuple[Tensor, Tensor],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        **options: Any,
    ) -> Tensor:
        found = kernels.attend(step, pages, query, key, value, **options)
        return self._compared(found, step, pages, query, **options)

    def attend_written(
        self, step: PagedStep, pages: tuple[Tensor, Tensor], query: Tensor, **options: Any
    ) -> Tensor:
        found = kernels.attend_written(step, pages, query, **options)
        return self._compared(found, step, pages, query, **options)

    def _compared(
        self,
        found: Tensor,
        step: PagedStep,
        pages: tuple[Tensor, Tensor],
        query: Tensor,
        **options: Any,
    ) -> Tensor:
        expected = _attend_in_float32(step, pages, query, **options)
        self._errors.append((found.float() - expected).norm() / expected.norm())
        return found

    def worst_error(self) -> float:
        """The largest relative difference of any layer in any step, by norms; NaN if one is NaN."""
        return float(torch.stack(self._errors).max()) if self._errors else 0.0


def _attend_in_float32(
    step: PagedStep,
    pages: tuple[Tensor, Tensor],
    query: Tensor,
    *,
    scale: float | None,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """As `attend` has it: (tokens, heads, head_dim) -> (tokens, heads, value_dim)."""
    out = []
    starts = step.starts.tolist()
    for row, length in enumerate(step.lengths.tolist()):
        new = query[starts[row] : starts[row + 1]].transpose(0, 1).float()
        blocks = step.tables[row, : -(-length // BLOCK_TOKENS)]
        keys, values = (gathered(each, blocks, length).float() for each in pages)
        mask = causal_mask(new.shape[1], length, window, query.device)
        attended = attend_plainly(new, keys, values, scale, softcap, sinks, mask)
        out.append(attended.transpose(0, 1))
    return torch.cat(out)
