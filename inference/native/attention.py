"""Attention of few new tokens over slabs, all sequences of a step in one call: see attention.c."""

from array import array
from collections.abc import Sequence
from ctypes import byref

import torch
from torch import Tensor

from inference.native.kernels import TYPES, Attention, kernels

_LANES = 16
_MOST_DIM = 512

SlabSpan = tuple[Tensor, Tensor, int, int, int, bool]
"""Keys and values (kv_heads, room, dim) of a sequence, its tokens so far, its new ones, where these
begin among the packed ones, and whether each is to be rounded as if it came alone."""


def most_tokens(query: Tensor, key: Tensor, value: Tensor) -> int:
    """How many new tokens of a sequence are best attended for here; 0 where there are no kernels.

    (heads, tokens, dim), as in `attend`. For more, torch's products are as quick.
    """
    dims = (query.shape[-1], value.shape[-1])
    library = kernels()
    can = (
        library is not None
        and query.dtype in TYPES
        and query.dtype == key.dtype == value.dtype
        and all(dim % _LANES == 0 and dim <= _MOST_DIM for dim in dims)
    )
    return int(library.most_tokens(TYPES[query.dtype], *dims)) if library and can else 0


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spans: Sequence[SlabSpan],
    out: Tensor,
    *,
    scaling: float | None,
    sliding_window: int | None,
) -> None:
    """Write the spans' new keys and values into their slabs, and what their tokens attend to into `out`.

    query: (heads, tokens, dim), key and value: (kv_heads, tokens, dim or value_dim), all packed; out:
    (tokens, heads, value_dim), contiguous. Causal; the sums are in float32.
    """
    library = kernels()
    assert library is not None
    query, key, value = (t if t.stride(-1) == 1 else t.contiguous() for t in (query, key, value))
    settings = Attention(
        *(t.data_ptr() for t in (query, key, value, out)),
        *(stride for t in (query, key, value) for stride in t.stride()[:2]),
        *(query.shape[0], key.shape[0], query.shape[-1], value.shape[-1], sliding_window or 0),
        query.shape[-1] ** -0.5 if scaling is None else scaling,
        TYPES[query.dtype],
    )
    table = array("q")
    for keys, values, *numbers in spans:
        table.extend((keys.data_ptr(), values.data_ptr(), keys.shape[1], *numbers))
    library.attend(byref(settings), table.buffer_info()[0], len(spans), torch.get_num_threads())
