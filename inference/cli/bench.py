"""`python -m inference bench`: how fast a model is on this machine, by itself.

Nobody guesses ahead: prompts are random, a model repeats itself on them, and would be guessed right.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random

from inference.cli import table
from inference.cli.arguments import engine_config
from inference.cli.jobs import Job, Trace, decode_span, prefill_span, random_prompt, run_jobs
from inference.cli.random_model import make_random_model
from inference.cli.screen import Screen, phase
from inference.config import EngineConfig
from inference.engine import Engine
from inference.errors import ModelError
from inference.weights import read_config

STREAMS = (1, 4, 16)
_PREFILL_TOKENS = 512
_SHORT_PROMPT_TOKENS = 32  # where decoding is measured
_NEW_TOKENS = 32  # behind a cached beginning


def run(arguments: argparse.Namespace) -> int:
    screen = Screen()
    with _model(arguments, screen) as model:
        config = engine_config(arguments, model, max_num_drafting=0)
        result = asyncio.run(_measure(config, arguments.rounds, arguments.tokens, screen))
    screen.clear_progress()
    table.show(f"{arguments.random or config.default_model}, {result['dtype']}", result["rows"])
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2))
    return 0


@contextmanager
def _model(arguments: argparse.Namespace, screen: Screen) -> Iterator[str]:
    """The model to measure; one with random weights is there for as long as it is."""
    if not arguments.random:
        yield arguments.model
        return
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        screen.show_progress(f"Making random weights of {arguments.random}")
        yield str(make_random_model(arguments.random, Path(folder) / arguments.random))


async def _measure(
    config: EngineConfig, num_rounds: int, num_tokens: int, screen: Screen
) -> table.Row:
    load_average = os.getloadavg()[0]
    async with _loaded(config, screen) as engine:
        model = config.default_model
        bench = _Bench(engine, model, num_tokens)
        await bench.warm_up()
        found: dict[tuple[str, str], list[float]] = {}
        for number in range(num_rounds):
            screen.show_progress(f"Round {number + 1} of {num_rounds}")
            for key, value in (await bench.round()).items():
                found.setdefault(key, []).append(value)
        info = engine.info(model)
        assert info is not None, "it is loaded"
    return {
        "machine": table.machine(),
        "load_average": load_average,
        "threads": config.num_threads,
        "model": model,
        "dtype": info.dtype,
        "num_parameters": info.num_parameters,
        "rows": [_row(*key, values) for key, values in found.items()],
    }


@asynccontextmanager
async def _loaded(config: EngineConfig, screen: Screen) -> AsyncIterator[Engine]:
    """An engine whose default model is ready. Raises ModelError where it cannot be."""
    engine = Engine(config)
    try:
        engine.load(config.default_model)
        async for _ in engine.changes():
            state = engine.state(config.default_model)
            if state.state == "failed":
                raise ModelError(state.detail)
            if state.state == "ready":
                break
            screen.show_progress(phase(state))
        yield engine
    finally:
        await engine.close()


class _Bench:
    """The measurements of one round, on a loaded model."""

    def __init__(self, engine: Engine, model: str, num_tokens: int) -> None:
        self._engine, self._model = engine, model
        path = engine.spec(model).path
        assert path is not None, "models on other servers are not measured here"
        config = read_config(path)
        self._vocab_size = int((config.get("text_config") or config)["vocab_size"])
        context_tokens = engine.context_tokens(model)
        self._num_tokens = min(num_tokens, context_tokens // 2)
        self._prefill_tokens = min(_PREFILL_TOKENS, context_tokens // 2)
        self._short_tokens = min(_SHORT_PROMPT_TOKENS, context_tokens // 8)
        self._rng = Random(0)  # noqa: S311  for tokens, not for secrets

    async def warm_up(self) -> None:
        await self._run([Job(self._prompt(self._short_tokens), 4)])

    async def round(self) -> dict[tuple[str, str], float]:
        """Every measurement once: (what, unit) -> figure."""
        found = await self._read()
        for num_streams in STREAMS:
            jobs = [
                Job(self._prompt(self._short_tokens), self._num_tokens) for _ in range(num_streams)
            ]
            speed = decode_span(await self._run(jobs)).tokens_per_s
            found[f"decode, {num_streams} at once", "tok/s"] = speed
        return found

    async def _read(self) -> dict[tuple[str, str], float]:
        """A prompt that nobody has seen, and then one that begins with it."""
        prompt = self._prompt(self._prefill_tokens)
        cold = await self._run([Job(prompt, 1)])
        num_new = min(_NEW_TOKENS, len(prompt) // 4)
        warm = await self._run([Job(prompt[:-num_new] + self._prompt(num_new), 1)])
        num_read = len(prompt) - warm[0].num_cached
        return {
            (f"prefill of {len(prompt)}", "tok/s"): prefill_span(cold).tokens_per_s,
            (f"TTFT of {len(prompt)}", "ms"): cold[0].ttft_s * 1e3,
            (f"TTFT, all but {num_read} cached", "ms"): warm[0].ttft_s * 1e3,
        }

    def _prompt(self, num_tokens: int) -> tuple[int, ...]:
        return random_prompt(self._rng, num_tokens, self._vocab_size)

    async def _run(self, jobs: list[Job]) -> list[Trace]:
        return await run_jobs(self._engine, self._model, jobs)


def _row(what: str, unit: str, values: list[float]) -> table.Row:
    low, middle, high = table.quartiles(values)
    return {"measured": what, "median": middle, "lower": low, "upper": high, "unit": unit}
