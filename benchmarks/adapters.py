"""`python -m benchmarks.adapters`: what LoRA adapters add to a step of the model.

Weights are random, of a real shape; every adapter changes all linear layers. A step decodes one token
for each of some sequences, or reads a chunk of a prompt, in the runner itself: no worker, no web. The
ways take turns, and medians are shown.
"""

import argparse
import statistics
from collections.abc import Sequence as Names
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from benchmarks.table import machine, show
from inference.adapter_loader import load_adapters
from inference.adapters import Adapters
from inference.assembly import dtype_of, load_part, make_kv
from inference.cli.random_model import make_random_model
from inference.cli.shapes import SHAPES
from inference.config import DTYPES, Adapter, EngineConfig
from inference.hybrid_runner import make_runner
from inference.kv import KVCache
from inference.loader import LoadedModel
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.sequence import Sequence
from tests.inference.tiny_adapters import make_adapter

_NAME = "model"
_CONTEXT_TOKENS = 128  # behind which a token is decoded
_KV_BYTES = 2**31
_STEPS = {"decode, 1": (1, 1), "decode, 16": (16, 1), "read 256": (1, 256)}  # sequences, tokens
_WAYS = {"base": 0, "one adapter": 1, "four": 4, "eight": 8}  # how many are in a step


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-0.6b")
    parser.add_argument("--dtype", choices=DTYPES, default="int8")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        loaded, adapters, kv = _load(Path(folder), options)
    runner = make_runner(loaded.model, kv, adapters)
    rows = [_measure(runner, step, options.rounds) for step in _STEPS]
    size_mib = next(iter(adapters.infos.values())).size_bytes / 2**20
    title = (
        f"{options.shape}, {loaded.info.dtype}, rank {options.rank} ({size_mib:.0f} MiB each), ms"
    )
    show(f"{title}; {options.threads} thread(s), {machine()['cpu']}", rows)


def _load(folder: Path, options: argparse.Namespace) -> tuple[LoadedModel, Adapters, KVCache]:
    base = make_random_model(options.shape, folder / _NAME)
    names = _names(max(_WAYS.values()))
    paths = [make_adapter(folder / n, base, seed=i, rank=options.rank) for i, n in enumerate(names)]
    config = EngineConfig(
        folder,
        dtype=options.dtype,
        kv_bytes=_KV_BYTES,
        device="cpu",
        adapters=tuple(Adapter(n, _NAME, p) for n, p in zip(names, paths, strict=True)),
    )
    loaded = load_part(_NAME, base, config, lambda *_: None)
    adapters = load_adapters(loaded, config, lambda *_: None, dtype_of(config))
    assert not any(info.problem for info in adapters.infos.values()), adapters.infos
    return loaded, adapters, make_kv(loaded, config)


def _names(count: int) -> list[str]:
    return [f"adapter {number}" for number in range(count)] or [""]


def _measure(runner: ModelRunner, step: str, rounds: int) -> dict[str, object]:
    num_sequences, num_tokens = _STEPS[step]
    ways = {way: _names(n) for way, n in _WAYS.items() if n <= num_sequences}
    taken_s: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, names in ways.items():
            plan = _plan(runner, names, num_sequences, num_tokens)
            _run(runner, plan)  # the first has room to make
            taken_s[way] += [_run(runner, plan) for _ in range(3)]
    medians = {way: statistics.median(taken) * 1e3 for way, taken in taken_s.items()}
    cells = {way: f"{ms:.1f} ({ms / medians['base']:.2f} x)" for way, ms in medians.items()}
    return {"step": step, **dict.fromkeys(_WAYS, "–"), **cells}


def _plan(
    runner: ModelRunner, names: Names[str], num_sequences: int, num_tokens: int
) -> list[tuple[Sequence, int]]:
    plan = []
    for number in range(num_sequences):
        prompt = tuple(range(5, 5 + _CONTEXT_TOKENS + num_tokens))
        adapter = names[number % len(names)]
        params = SamplingParams(max_tokens=1)
        sequence = Sequence(GenerateRequest(str(number), _NAME, prompt, params, adapter=adapter))
        runner.kv.release(sequence.id)
        is_there = runner.kv.reserve(sequence.id, len(prompt) + 1)
        assert is_there, "the cache is too small"
        plan.append((sequence, num_tokens))
    return plan


def _run(runner: ModelRunner, plan: list[tuple[Sequence, int]]) -> float:
    """Returns how long a step took, in seconds; what is in front of its tokens need not be right."""
    for sequence, num_tokens in plan:
        sequence.num_computed = len(sequence.token_ids) - num_tokens
    started_s = perf_counter()
    runner.run(plan)
    return perf_counter() - started_s


if __name__ == "__main__":
    main()
