"""Whole requests through the engine and its worker process: all at once, as they come, and a kill."""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.gpu.roofline import Roofline, add_share
from benchmarks.gpu.timing import Ceilings
from benchmarks.table import Row
from inference import Engine, EngineConfig, GenerateRequest, SamplingParams, Tokens
from inference.cli.random_model import make_random_model
from inference.cli.shapes import SHAPES

_MOST_AT_ONCE = 256
_STEP_TOKENS = 2048
RATES = (2.0, 8.0, 16.0)  # requests a second


async def measure_serving(
    found: Ceilings,
    shape: str,
    folder: Path,
    device: str,
    *,
    is_quick: bool,
    rates: Sequence[float] = RATES,
    has_kill: bool = True,
) -> list[Row]:
    """`256 requests` is nano-vllm's: 100 to 1,024 tokens in and out, uniform, all asked at once. Of
    `beside prompts` the gaps are of those who write while prompts arrive. The roofline is of the same
    requests as if all had come at once: who waits for them to come is far below it."""
    path, roofline = kept_model(shape, folder), Roofline.of(found, SHAPES[shape])
    engine = Engine(_config(path, device))
    try:
        begin_s = time.perf_counter()
        await _told(engine, _request(0, 8, 4), begin_s)  # loaded, compiled
        print(f"… loaded in {time.perf_counter() - begin_s:.1f} s", file=sys.stderr, flush=True)
        num, longest = (4, 16) if is_quick else (256, 1024)
        asked = requests(1, num, longest)
        name = f"{num} requests at once"
        rows = [await _all_at_once(engine, asked, name, roofline.requests_s(sizes_of(asked)))]
        sizes = (2, 2, 40) if is_quick else (32, 24, 2000)
        rows.append(await _beside_prompts(engine, roofline, *sizes))
        for per_s in (20.0,) if is_quick else rates:
            rows.append(await _as_they_come(engine, roofline, num // 4, per_s, longest))
        if has_kill:
            rows.append(await _killed(engine, roofline, min(8, num), longest))
        return rows
    finally:
        await engine.close()


def kept_model(shape: str, folder: Path) -> Path:
    """One of random weights, made where there is none yet."""
    path = folder / shape
    return path if path.exists() else make_random_model(shape, path)


def _config(path: Path, device: str) -> EngineConfig:
    return EngineConfig(
        models_dir=path.parent / "pulled",
        extra_models=(f"model={path}",),
        default_model="model",
        device=device,
        kv_layout="paged",
        max_num_sequences=_MOST_AT_ONCE,
        step_budget_tokens=_STEP_TOKENS,
    )


async def closed_loop(
    path: Path, device: str, asked: list[GenerateRequest], name: str, least_s: float
) -> Row:
    """Requests at once through an engine of their own."""
    engine = Engine(_config(path, device))
    try:
        await _told(engine, _request(0, 8, 4), time.perf_counter())
        return await _all_at_once(engine, asked, name, least_s)
    finally:
        await engine.close()


def _request(number: int, num_prompt: int, num_output: int) -> GenerateRequest:
    rng = random.Random(number)
    ids = tuple(rng.randrange(3, 1000) for _ in range(num_prompt))
    params = SamplingParams(max_tokens=num_output, ignore_eos=True, temperature=0.0)
    return GenerateRequest(f"r{number}", "model", ids, params, user=f"user {number}")


async def _told(engine: Engine, request: GenerateRequest, asked_s: float) -> list[float]:
    """When each token came, in seconds behind `asked_s`."""
    times: list[float] = []
    async for update in engine.generate(request):
        if isinstance(update, Tokens):
            times += [time.perf_counter() - asked_s] * len(update.ids)
    assert len(times) == request.params.max_tokens, "an answer that ends too early"
    return times


def requests(first: int, count: int, longest: int) -> list[GenerateRequest]:
    """With 100 to `longest` random tokens in and out."""
    rng = random.Random(first)
    least = min(100, longest)
    sizes = [(rng.randint(least, longest), rng.randint(least, longest)) for _ in range(count)]
    return [_request(first + number, *size) for number, size in enumerate(sizes)]


def sizes_of(asked: Sequence[GenerateRequest]) -> list[tuple[int, int]]:
    """Tokens in and out of each."""
    return [(len(one.prompt_ids), one.params.max_tokens) for one in asked]


async def _all_at_once(
    engine: Engine, asked: list[GenerateRequest], name: str, least_s: float
) -> Row:
    begin_s = time.perf_counter()
    times = await asyncio.gather(*(_told(engine, one, begin_s) for one in asked))
    return row_of(name, times, time.perf_counter() - begin_s, least_s)


async def _as_they_come(
    engine: Engine, roofline: Roofline, count: int, per_s: float, longest: int
) -> Row:
    """A Poisson process: exponential gaps, whatever the engine is at."""
    rng = random.Random(per_s)
    begin_s = time.perf_counter()
    running = []
    asked = requests(int(1000 * per_s), count, longest)
    for request in asked:
        running.append(asyncio.create_task(_told(engine, request, time.perf_counter())))
        await asyncio.sleep(rng.expovariate(per_s))
    times = await asyncio.gather(*running)
    took_s = time.perf_counter() - begin_s
    return row_of(f"{per_s:g} a second", times, took_s, roofline.requests_s(sizes_of(asked)))


async def _beside_prompts(
    engine: Engine, roofline: Roofline, num_writers: int, num_prompts: int, length: int
) -> Row:
    """Four prompts a second arrive while others write; their own times are not in the row."""
    begin_s = time.perf_counter()
    num_tokens = 24 if length < 100 else 1200
    asked = [_request(70_000 + n, 100, num_tokens) for n in range(num_writers)]
    writers = [asyncio.create_task(_told(engine, one, begin_s)) for one in asked]
    prompts = []
    for number in range(num_prompts):
        await asyncio.sleep(0.25)
        request = _request(80_000 + number, length, 1)
        asked.append(request)
        prompts.append(asyncio.create_task(_told(engine, request, time.perf_counter())))
    times = await asyncio.gather(*writers)
    took_s = time.perf_counter() - begin_s
    await asyncio.gather(*prompts)
    name = f"{num_writers} beside prompts of {length:,}"
    return row_of(name, times, took_s, roofline.requests_s(sizes_of(asked)))


async def _killed(engine: Engine, roofline: Roofline, count: int, longest: int) -> Row:
    """kill -9 of the worker in the middle; the longest gap is what its readers see of it."""
    begin_s = time.perf_counter()
    asked = [_request(90_000 + n, longest // 2, longest) for n in range(count)]
    running = [asyncio.create_task(_told(engine, one, begin_s)) for one in asked]
    await asyncio.sleep(0.5)
    if pid := engine.worker_pid("model"):
        os.kill(pid, signal.SIGKILL)
    times = await asyncio.gather(*running)
    took_s = time.perf_counter() - begin_s
    return row_of("kill -9 of the worker", times, took_s, roofline.requests_s(sizes_of(asked)))


def row_of(name: str, times: list[list[float]], took_s: float, least_s: float) -> Row:
    row = add_share(_figures(name, times, took_s), least_s, took_s)
    print(f"… {json.dumps(row)}", file=sys.stderr, flush=True)
    return row


def _figures(name: str, times: list[list[float]], took_s: float) -> Row:
    gaps = sorted(b - a for own in times for a, b in pairwise(own))
    first = sorted(own[0] for own in times)
    return {
        "scenario": name,
        "tokens/s": sum(map(len, times)) / took_s,
        "TTFT p50 ms": median(first) * 1e3,
        "TTFT p99 ms": _at(first, 0.99) * 1e3,
        "gap p50 ms": _at(gaps, 0.5) * 1e3,
        "gap p99 ms": _at(gaps, 0.99) * 1e3,
        "gap max ms": _at(gaps, 1.0) * 1e3,
    }


def _at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0
