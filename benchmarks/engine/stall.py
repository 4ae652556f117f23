"""What a long prompt does to the streams beside it: their steps meanwhile, against undisturbed ones."""

import asyncio
from random import Random
from statistics import median, quantiles
from time import monotonic

from benchmarks import table
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import Vitrine
from inference.cli.jobs import Job, Trace, random_prompt, run_job


def measure_stall(vitrine: Vitrine, setting: Setting, vocab_size: int) -> table.Row:
    calm_s: list[float] = []
    disturbed_s: list[float] = []
    for number in range(setting.rounds):
        rng = Random(f"{setting.seed} stall {number}")
        calm, disturbed = vitrine.loop.run_until_complete(
            _disturb(vitrine, setting, rng, vocab_size)
        )
        calm_s += calm
        disturbed_s += disturbed
    calm_ms, p99_ms = median(calm_s) * 1e3, _p99(disturbed_s) * 1e3
    row = {
        "system": vitrine.name,
        "streams": setting.stall_streams,
        "prompt tokens": setting.stall_prompt_tokens,
        "calm median ms": calm_ms,
        "calm p99 ms": _p99(calm_s) * 1e3,
        "median ms": median(disturbed_s) * 1e3,
        "p99 ms": p99_ms,
        "worst ms": max(disturbed_s) * 1e3,
    }
    return {"rows": [row], "ratios": {"p99 / calm median": p99_ms / calm_ms}}


async def _disturb(
    vitrine: Vitrine, setting: Setting, rng: Random, vocab_size: int
) -> tuple[list[float], list[float]]:
    """Seconds from token to token of all streams: before the long prompt, and while it is read."""

    def prompt(num_tokens: int) -> tuple[int, ...]:
        return random_prompt(rng, num_tokens, vocab_size)

    # More than they will write: they end with the scenario.
    endless = 2 * setting.stall_prompt_tokens
    streams = [
        Trace(Job(prompt(setting.decode_prompt_tokens), endless), monotonic())
        for _ in range(setting.stall_streams)
    ]
    engine, model = vitrine.engine, vitrine.model
    tasks = [asyncio.create_task(run_job(engine, model, t.job, t)) for t in streams]
    while min(len(stream.token_s) for stream in streams) < setting.calm_tokens:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    long = await run_job(engine, model, Job(prompt(setting.stall_prompt_tokens), 1))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    begin_s, end_s = long.started_s, long.token_s[0]
    first_s = max(stream.token_s[0] for stream in streams)  # before, their own prompts were read
    calm, disturbed = [], []
    for stream in streams:
        for gap_s, at_s in zip(stream.gaps_s, stream.token_s[1:], strict=True):
            if first_s < at_s - gap_s and at_s <= begin_s:
                calm.append(gap_s)
            elif begin_s < at_s <= end_s:
                disturbed.append(gap_s)
    return calm, disturbed


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[-1]
