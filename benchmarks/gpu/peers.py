"""transformers beside us: its generate, and its continuous batching on the same requests as ours."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, GenerationConfig

from benchmarks.engine.transformers_peer import ContinuousBatching
from benchmarks.gpu.roofline import Roofline, add_share
from benchmarks.gpu.serving import closed_loop, kept_model, requests, row_of, sizes_of
from benchmarks.gpu.steps import random_model, sized
from benchmarks.gpu.timing import Bench, Ceilings
from benchmarks.table import Row
from inference.cli.shapes import SHAPES

_SEED = 64  # of the requests' sizes
_REPEATS = 3  # of generate, which takes a second
_CONTEXT, _NUM_TOKENS = 512, 32
_QUICK_CONTEXT, _QUICK_NUM_TOKENS = 24, 8


@torch.no_grad()  # what is compiled wants no tensors of inference mode
def measure_generate(bench: Bench, found: Ceilings, shape: dict[str, Any]) -> list[Row]:
    """A token of one sequence by transformers' generate, with a dynamic cache and with a static one, for
    which it compiles the model by itself on a GPU."""
    model = random_model(bench, AutoConfig.for_model(**sized(bench, shape)))
    context, num_tokens = _sizes(bench)
    least_s = Roofline.of(found, sized(bench, shape)).step_s(1, context + num_tokens // 2)
    rows = []
    for cache in ("dynamic", "static"):
        try:
            token_ms = 1e3 * _token_s(bench, model, cache)
        except Exception as error:  # no compiler here, say
            print(f"generate with a {cache} cache is left out: {error}", file=sys.stderr)
            continue
        row: Row = {"generate, cache": cache, "a token ms": token_ms}
        rows.append(add_share(row, least_s, token_ms / 1e3))
        print(f"… {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def _sizes(bench: Bench) -> tuple[int, int]:
    """Tokens that are read, and written."""
    return (_QUICK_CONTEXT, _QUICK_NUM_TOKENS) if bench.is_quick else (_CONTEXT, _NUM_TOKENS)


def _token_s(bench: Bench, model: Any, cache: str) -> float:
    context, num_tokens = _sizes(bench)
    ids = torch.randint(3, 1000, (1, context), device=bench.device)

    def run(count: int) -> float:
        setting = GenerationConfig(
            max_new_tokens=count,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            **({} if cache == "dynamic" else {"cache_implementation": cache}),
        )
        mask = torch.ones_like(ids)
        return bench.seconds(
            lambda: model.generate(ids, attention_mask=mask, generation_config=setting),
            repeats=min(_REPEATS, bench.repeats),
        )

    return (run(num_tokens) - run(1)) / (num_tokens - 1)


def measure_batching(
    found: Ceilings, shape: str, folder: Path, device: str, *, is_quick: bool
) -> list[Row]:
    """A quarter of the 256 requests, of a quarter of their length: it has no kernels of its own for
    attention over pages, but SDPA with a mask over the whole batch."""
    path = kept_model(shape, folder)
    count, longest = (4, 16) if is_quick else (64, 256)
    name = f"{count} requests at once"
    asked = requests(_SEED, count, longest)
    least_s = Roofline.of(found, SHAPES[shape]).requests_s(sizes_of(asked))
    rows = [asyncio.run(closed_loop(path, device, asked, f"vitrine, {name}", least_s))]
    peer = ContinuousBatching(path, 1, count, 2 * longest, device)
    try:
        begin_s = time.perf_counter()
        clock = time.monotonic() - begin_s
        told = peer.run(
            [list(one.prompt_ids) for one in asked], [one.params.max_tokens for one in asked]
        )
        took_s = time.perf_counter() - begin_s
    finally:
        peer.close()
    times = [[at_s - clock - begin_s for at_s in own] for own in told]
    return [*rows, row_of(f"transformers' continuous batching, {name}", times, took_s, least_s)]
