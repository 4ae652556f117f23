"""A step's attention by the kernels: keys and values go to their slots, and all tokens attend at once.

What the kernels have to be told of a step is in `PagedStep`.
"""

from torch import Tensor

from inference.block_pool import BLOCK_TOKENS
from inference.gpu.decode import MOST_SPLITS, decode
from inference.gpu.paged_step import PagedStep
from inference.gpu.prefill import prefill
from inference.gpu.writing import write_only

_SPLITS_PER_LAUNCH = 384  # programs that fill a large GPU, where there are few sequences
_LEAST_KEYS = 128  # of a split: fewer are not worth a second launch's work


def attend(
    step: PagedStep,
    pages: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """query: (tokens, heads, head_dim), key and value: (tokens, kv_heads, dim), of a step's packed
    tokens in order -> (tokens, heads, value_dim). Keys carry RoPE already; `pages` are the layer's."""
    write_only(_dense(key), _dense(value), step.slots, *pages)
    return attend_written(
        step, pages, query, scale=scale, window=window, softcap=softcap, sinks=sinks
    )


def attend_written(
    step: PagedStep,
    pages: tuple[Tensor, Tensor],
    query: Tensor,
    *,
    scale: float | None,
    window: int | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """`attend` where keys and values are in their slots."""
    query = _dense(query)
    if not step.is_decode:
        return prefill(
            *(query, *pages, step.tables, step.starts, step.lengths),
            scale=scale,
            window=window,
            softcap=softcap,
            sinks=sinks,
        )
    return decode(
        *(query, *pages, step.tables, step.lengths),
        scale=scale,
        window=window,
        softcap=softcap,
        sinks=sinks,
        num_splits=_num_splits(query.shape[0] * pages[0].shape[2], step.tables.shape[1]),
    )


def _num_splits(num_programs: int, num_blocks: int) -> int:
    """Of each of so many sequences' heads, by the width of the tables: lengths are the device's."""
    to_fill = _SPLITS_PER_LAUNCH // max(1, num_programs)
    return max(1, min(to_fill, num_blocks * BLOCK_TOKENS // _LEAST_KEYS, MOST_SPLITS))


def _dense(rows: Tensor) -> Tensor:
    """The kernels step over tokens and heads as they lie, but read a head as a whole."""
    return rows if rows.stride(-1) == 1 else rows.contiguous()
