"""How many rows of queries and how many keys a program of the attention kernels holds at once.

Keys and values that are read lie in shared memory, and the sums in registers. What does not fit is found
out by the launch, not by the interpreter: so sizes are chosen to fit the smallest GPUs with bfloat16
(compute capability 8.6 and 8.9: 99 KiB for a program, CUDA C++ Programming Guide, "Technical
Specifications"), and larger ones are for devices that have more. They are the quickest of some forty
that were timed on an H200; of other devices no time is known.
"""

from dataclasses import dataclass, replace
from functools import cache

import torch
import triton

LEAST_SIZE = 16  # of each side of a tensor core's product
_MOST_KEYS = 64
_SHARED_BYTES = 64 * 1024  # for keys and values; queries and weights need the rest
# Above these, the registers of four warps are too few:
_WIDE_BYTES = 1024  # of a key and its value
_SMALL_BYTES = 512  # likewise: with many rows, so many keys fit beside their queries
_ROW_BYTES = 64 * 128 * 2  # of the rows' results
_MANY_ROWS = 64  # of 16 bits: in float32 no registers are left
_MANY_PROGRAMS = 128  # of single tokens: enough, so that each may hold more
_ROOMY_BYTES = 200 * 1024
_LEAST_SHARED_BYTES = 99 * 1024


@dataclass(frozen=True, slots=True)
class Tile:
    """`block_dim` and `block_value` are a head's sizes, filled up to what products can be made of."""

    rows: int
    keys: int
    block_dim: int
    block_value: int
    num_warps: int
    num_stages: int = 2  # of the pipeline that reads keys and values


@cache
def shared_bytes() -> int:
    """What a program may have on this machine's device, or on any where there is none."""
    if not torch.cuda.is_available():
        return _LEAST_SHARED_BYTES
    found = getattr(torch.cuda.get_device_properties(0), "shared_memory_per_block_optin", None)
    return int(found or _LEAST_SHARED_BYTES)


def decode_tile(
    group: int, head_dim: int, value_dim: int, itemsize: int, num_programs: int = 1
) -> Tile:
    """For a token's `group` of heads that share keys; `itemsize` is a value's, in bytes, `num_programs`
    how many a whole sequence's would be."""
    tile = _tile(max(LEAST_SIZE, group), _MOST_KEYS, head_dim, value_dim, itemsize)
    is_small = tile.num_warps == 4 and tile.keys == _MOST_KEYS
    if is_small and num_programs >= _MANY_PROGRAMS and shared_bytes() >= _ROOMY_BYTES:
        return replace(tile, keys=2 * tile.keys, num_stages=3)
    return tile


def prefill_tile(
    group: int, head_dim: int, value_dim: int, itemsize: int, num_tokens: int, num_sequences: int
) -> tuple[Tile, int]:
    """With how many neighbouring tokens it holds: many where the sequences have many on average.

    Each program reads all the keys before it, so more tokens at once are fewer readings; where a
    sequence has few, the rows would stay empty.
    """
    wanted = max(LEAST_SIZE, 2 * triton.next_power_of_2(group))
    is_narrow = itemsize <= 2 and (head_dim + value_dim) * itemsize <= _WIDE_BYTES
    if is_narrow and num_tokens * group >= _MANY_ROWS * num_sequences:
        wanted = max(wanted, _MANY_ROWS)
    tokens_at_once = max(1, wanted // group)
    rows = max(LEAST_SIZE, tokens_at_once * group)
    is_small = (head_dim + value_dim) * itemsize <= _SMALL_BYTES
    most_keys = _MOST_KEYS if is_small else _MOST_KEYS // 2
    return _tile(rows, most_keys, head_dim, value_dim, itemsize), tokens_at_once


def _tile(rows: int, most_keys: int, head_dim: int, value_dim: int, itemsize: int) -> Tile:
    rows = triton.next_power_of_2(rows)
    block_dim, block_value = (
        max(LEAST_SIZE, triton.next_power_of_2(dim)) for dim in (head_dim, value_dim)
    )
    key_bytes = (block_dim + block_value) * itemsize
    keys = most_keys
    while keys > LEAST_SIZE and keys * key_bytes > _SHARED_BYTES:
        keys //= 2
    is_large = key_bytes > _WIDE_BYTES or rows * block_value * itemsize > _ROW_BYTES
    return Tile(rows, keys, block_dim, block_value, num_warps=8 if is_large else 4)
