"""The kernels that steps with prompts have beside: attention of many new tokens, and RoPE with the
writing of keys and values. Are they right, and how near do they come to what the device can do?
"""

from functools import partial

import torch
from torch import Tensor

from benchmarks.gpu.kernels import DIM, HEADS, KV_HEADS, first_in_float64, random_values
from benchmarks.gpu.roofline import add_share
from benchmarks.gpu.timing import Bench, Ceilings
from benchmarks.table import Row
from inference.block_pool import BLOCK_TOKENS
from inference.gpu.prefill import prefill
from inference.gpu.writing import write

_GRID = ((2048, 0), (1024, 7168))  # new tokens, and those behind which they are
_QUICK_GRID = ((5, 20),)
_WRITTEN, _QUICK_WRITTEN = (2048, 256), (3,)
_ALL_BYTES = 2**28  # of pages that are written in turn: more than caches hold


def measure_prompt_kernels(bench: Bench, found: Ceilings) -> list[Row]:
    """The error is of what the last token is given, and of the keys that are in the pages."""
    grid, written = (_QUICK_GRID, _QUICK_WRITTEN) if bench.is_quick else (_GRID, _WRITTEN)
    rows = [_attention(bench, found, num_new, num_behind) for num_new, num_behind in grid]
    return rows + [_writing(bench, found, num_tokens) for num_tokens in written]


def _attention(bench: Bench, found: Ceilings, num_new: int, num_behind: int) -> Row:
    torch.manual_seed(num_new)
    length = num_new + num_behind
    width = -(-length // BLOCK_TOKENS)
    keys, values = (random_values(bench, width + 1, BLOCK_TOKENS, KV_HEADS, DIM) for _ in range(2))
    tables = (torch.randperm(width) + 1)[None].to(bench.device, torch.int32)
    starts, lengths = (
        torch.tensor(some, dtype=torch.int32, device=bench.device)
        for some in ([0, num_new], [length])
    )
    query = random_values(bench, num_new, HEADS, DIM)
    attend = partial(prefill, query, keys, values, tables, starts, lengths)
    took_s = bench.device_seconds([attend])
    wanted = first_in_float64(query[-1:], keys, values, tables, length)
    pairs = num_new * num_behind + num_new * (num_new + 1) / 2
    operations = 4 * pairs * HEADS * DIM
    row: Row = {
        "kernel": "attention",
        "tokens": num_new,
        "behind": num_behind,
        "us": took_s * 1e6,
        "GB/s": None,
        "TFLOP/s": operations / took_s / 1e12,
        "error": _error(attend()[-1], wanted),
    }
    return add_share(row, operations / found.operations_per_s, took_s)


def _writing(bench: Bench, found: Ceilings, num_tokens: int) -> Row:
    """Queries and keys are read, and queries, keys and values written, and these read before."""
    torch.manual_seed(num_tokens)
    num_blocks = -(-num_tokens // BLOCK_TOKENS)
    size = (num_blocks, BLOCK_TOKENS, KV_HEADS, DIM)
    one_bytes = 4 * num_blocks * BLOCK_TOKENS * KV_HEADS * DIM
    num_layers = 1 if bench.is_quick else max(1, _ALL_BYTES // one_bytes)
    slots = torch.randperm(num_blocks * BLOCK_TOKENS)[:num_tokens].to(bench.device)
    angles = torch.rand(num_tokens, DIM // 2, device=bench.device).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()
    query = random_values(bench, num_tokens, HEADS, DIM)
    key, value = (random_values(bench, num_tokens, KV_HEADS, DIM) for _ in range(2))
    pages = [[random_values(bench, *size) for _ in range(2)] for _ in range(num_layers)]
    took_s = bench.device_seconds(
        [partial(write, query, key, value, slots, *own, (cos, sin)) for own in pages]
    )
    first, second = key.double().chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    wanted = key.double() * cos[:, None] + turned * sin[:, None]
    moved = 2 * (query.nbytes + key.nbytes + value.nbytes) + cos.nbytes + sin.nbytes
    row: Row = {
        "kernel": "RoPE, writing",
        "tokens": num_tokens,
        "behind": 0,
        "us": took_s * 1e6,
        "GB/s": moved / took_s / 1e9,
        "TFLOP/s": None,
        "error": _error(pages[0][0].flatten(0, 1)[slots], wanted),
    }
    return add_share(row, moved / found.bytes_per_s, took_s)


def _error(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())
