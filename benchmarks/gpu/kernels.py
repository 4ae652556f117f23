"""The kernels by themselves: are they right, and how much of the memory's bandwidth do they reach?

Beside them torch's SDPA over keys and values that lie in one piece, as they do in no paged cache.
"""

import random
from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu.timing import Bench, Ceilings
from benchmarks.table import Row
from inference.block_pool import BLOCK_TOKENS
from inference.gpu.attention import _num_splits
from inference.gpu.decode import decode
from inference.gpu.prefill import prefill

HEADS, KV_HEADS, DIM = 32, 8, 128  # of Qwen3-8B
_GRID = ((1, 512), (1, 8192), (8, 2048), (32, 1024), (64, 1024), (256, 1024))
_QUICK = ((2, 40),)
_ALL_BYTES = 2**28  # of all layers, which are read in turn: more than caches hold


def measure_kernels(bench: Bench, found: Ceilings) -> list[Row]:
    grid = _QUICK if bench.is_quick else _GRID
    return [_row(bench, found, num, context) for num, context in grid]


def _row(bench: Bench, found: Ceilings, num_sequences: int, context: int) -> Row:
    torch.manual_seed(context)
    rng = random.Random(context)
    width = -(-context // BLOCK_TOKENS)
    num_blocks = num_sequences * width
    size = (num_blocks + 1, BLOCK_TOKENS, KV_HEADS, DIM)
    order = torch.randperm(num_blocks) + 1
    tables = order.view(num_sequences, width).to(bench.device, torch.int32)
    lengths = [context, *(rng.randint(1, context) for _ in range(num_sequences - 1))]
    counts = torch.tensor(lengths, dtype=torch.int32, device=bench.device)
    query = torch.randn(num_sequences, HEADS, DIM, device=bench.device).to(torch.bfloat16)
    num_layers = (
        1 if bench.is_quick else max(1, _ALL_BYTES // (4 * num_blocks * 16 * KV_HEADS * DIM))
    )
    layers = [[random_values(bench, *size) for _ in "kv"] for _ in range(num_layers)]
    num_splits = _num_splits(num_sequences * KV_HEADS, width)
    took_s = bench.device_seconds(
        [
            partial(decode, query, keys, values, tables, counts, num_splits=num_splits)
            for keys, values in layers
        ]
    )
    keys, values = layers[0]
    attended = decode(query, keys, values, tables, counts, num_splits=num_splits)
    starts = torch.arange(num_sequences + 1, dtype=torch.int32, device=bench.device)
    packed = prefill(query, keys, values, tables, starts, counts)
    read_bytes = sum(lengths) * 2 * KV_HEADS * DIM * keys.itemsize
    whole = [
        [random_values(bench, num_sequences, KV_HEADS, context, DIM) for _ in "kv"] for _ in layers
    ]
    sdpa_s = bench.device_seconds(
        [
            partial(scaled_dot_product_attention, query[:, :, None], keys, values, enable_gqa=True)
            for keys, values in whole
        ]
    )
    sdpa_bytes = num_sequences * context * 2 * KV_HEADS * DIM * keys.itemsize
    wanted = first_in_float64(query, keys, values, tables, context)
    error = (attended[0].double() - wanted).norm() / wanted.norm()
    return {
        "sequences": num_sequences,
        "context": context,
        "decode us": took_s * 1e6,
        "GB/s": read_bytes / took_s / 1e9,
        "% of roofline": 100 * read_bytes / took_s / found.bytes_per_s,
        "SDPA GB/s": sdpa_bytes / sdpa_s / 1e9,
        "error": float(error),
        "prefill apart": float((packed.double() - attended.double()).abs().max()),
    }


def random_values(bench: Bench, *size: int) -> torch.Tensor:
    return torch.randn(*size, device=bench.device, dtype=torch.bfloat16)


def first_in_float64(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    tables: torch.Tensor,
    length: int,
) -> torch.Tensor:
    """(heads, dim) of the first sequence."""
    group = HEADS // KV_HEADS
    blocks = tables[0].long()
    own_keys, own_values = (
        one[blocks].flatten(0, 1)[:length].double().repeat_interleave(group, 1)
        for one in (keys, values)
    )
    scores = torch.einsum("hd,thd->ht", query[0].double(), own_keys) * DIM**-0.5
    return torch.einsum("ht,thd->hd", scores.softmax(1), own_values)
