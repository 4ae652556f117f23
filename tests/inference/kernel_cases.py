"""Random steps over a paged cache, and what attention gives on them, written out in float64."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import triton
from torch import Tensor

# Where kernels run: by the interpreter on the processor, compiled on a device (TRITON_INTERPRET=0).
DEVICE = torch.device("cpu" if triton.knobs.runtime.interpret else "cuda")
BLOCK_TOKENS = 16
JUNK = 1e4  # in slots that nobody may read: it would tell in any result


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a layer's attention. `options` are those of `decode` and `prefill`."""

    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    value_dim: int = 16
    dtype: torch.dtype = torch.float32
    options: tuple[tuple[str, Any], ...] = ()
    has_sinks: bool = False
    kept_as: torch.dtype | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Packed tokens: sequence i has the last news[i] of its lengths[i] tokens in it."""

    query: Tensor
    keys: list[Tensor]  # of each sequence: (tokens, kv_heads, dim)
    values: list[Tensor]
    key_pages: Tensor
    value_pages: Tensor
    tables: Tensor
    starts: Tensor
    lengths: Tensor
    options: dict[str, Any]


def make_step(shape: Shape, lengths: list[int], news: list[int], seed: int) -> Step:
    """Blocks are handed out in a random order, and full of junk where nothing was written."""
    rng = torch.Generator().manual_seed(seed)

    def random(*size: int) -> Tensor:
        return torch.randn(*size, generator=rng, device="cpu").to(DEVICE, shape.dtype)

    counts = [-(-length // BLOCK_TOKENS) for length in lengths]
    order = (torch.randperm(sum(counts), generator=rng, device="cpu") + 1).tolist()
    size = (sum(counts) + 1, BLOCK_TOKENS, shape.kv_heads)
    key_pages = torch.full((*size, shape.head_dim), JUNK, dtype=shape.dtype)
    value_pages = torch.full((*size, shape.value_dim), JUNK, dtype=shape.dtype)
    tables = torch.zeros(len(lengths), max([*counts, 1]), dtype=torch.int32)
    keys, values = [], []
    for row, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        blocks = [order.pop() for _ in range(count)]
        tables[row, :count] = torch.tensor(blocks, dtype=torch.int32)
        keys.append(random(length, shape.kv_heads, shape.head_dim))
        values.append(random(length, shape.kv_heads, shape.value_dim))
        for position in range(length):
            block, offset = blocks[position // BLOCK_TOKENS], position % BLOCK_TOKENS
            key_pages[block, offset] = keys[-1][position]
            value_pages[block, offset] = values[-1][position]
    starts = torch.tensor([0, *torch.tensor(news).cumsum(0).tolist()], dtype=torch.int32)
    options = dict(shape.options)
    if shape.has_sinks:
        options["sinks"] = random(shape.heads)
    query = random(int(starts[-1]), shape.heads, shape.head_dim)
    lengths_ = torch.tensor(lengths, dtype=torch.int32)
    if shape.kept_as is not None:
        key_pages, value_pages = key_pages.to(shape.kept_as), value_pages.to(shape.kept_as)
        keys = [each.to(shape.kept_as).to(shape.dtype) for each in keys]
        values = [each.to(shape.kept_as).to(shape.dtype) for each in values]
    return Step(query, keys, values, key_pages, value_pages, tables, starts, lengths_, options)


def expected(step: Step) -> Tensor:
    """softmax(q k / sqrt(d)) v in float64, token by token; (tokens, heads, value_dim)."""
    out = []
    for row, (begin, end) in enumerate(pairwise(step.starts.tolist())):
        length = len(step.keys[row])
        for new in range(end - begin):
            position = length - (end - begin) + new
            out.append(_of_token(step, row, step.query[begin + new].double(), position))
    return torch.stack(out) if out else torch.empty(0)


def _of_token(step: Step, row: int, query: Tensor, position: int) -> Tensor:
    window = step.options.get("window")
    first = max(0, position - window + 1) if window else 0
    group = query.shape[0] // step.keys[row].shape[1]
    keys = step.keys[row][first : position + 1].double().repeat_interleave(group, 1)
    values = step.values[row][first : position + 1].double().repeat_interleave(group, 1)
    scale = step.options.get("scale") or query.shape[1] ** -0.5
    scores = torch.einsum("hd,thd->ht", query, keys) * scale
    if softcap := step.options.get("softcap"):
        scores = torch.tanh(scores / softcap) * softcap
    sinks = step.options.get("sinks")
    if sinks is not None:
        scores = torch.cat([scores, sinks.double()[:, None]], 1)
        return torch.einsum("ht,thd->hd", scores.softmax(1)[:, :-1], values)
    return torch.einsum("ht,thd->hd", scores.softmax(1), values)
