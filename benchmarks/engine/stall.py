"""What a long prompt does to the streams beside it: their steps meanwhile, against undisturbed ones.

While a prompt is read the streams write on, and what they have behind them takes longer to read by
itself: of Qwen3-0.6B's shape, 2,400 tokens behind each of four streams cost more than a step. So a step
is set against an undisturbed one with as much behind it, on the line between those before the prompt
and those after it: a step's time grows by as much for each token (attention reads each once).
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import median, quantiles
from time import monotonic

from benchmarks import table
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import Vitrine
from inference.cli.jobs import Job, Trace, random_prompt, run_job


@dataclass(frozen=True, slots=True)
class Step:
    """From a token of a stream to the next, its `number`th."""

    number: int
    gap_s: float


@dataclass(frozen=True, slots=True)
class Steps:
    """Of all streams, before the long prompt, while it is read, and after it."""

    before: list[Step]
    beside: list[Step]
    after: list[Step]

    def times_calm(self) -> list[float]:
        """Each disturbed step in times of an undisturbed one."""
        first, first_s = _middle(self.before)
        last, last_s = _middle(self.after)
        a_token_s = (last_s - first_s) / (last - first)
        return [s.gap_s / (first_s + (s.number - first) * a_token_s) for s in self.beside]


def measure_stall(vitrine: Vitrine, setting: Setting, vocab_size: int) -> table.Row:
    rounds = []
    read_s = 0.0
    for number in range(setting.rounds):
        rng = Random(f"{setting.seed} stall {number}")
        streams, long = vitrine.loop.run_until_complete(_disturb(vitrine, setting, rng, vocab_size))
        rounds.append(steps_of(streams, long.started_s, long.token_s[0]))
        read_s += long.ttft_s
    p99 = _p99([times for steps in rounds for times in steps.times_calm()])
    row = {
        "system": vitrine.name,
        "streams": setting.stall_streams,
        "prompt tokens": setting.stall_prompt_tokens,
        "read tok/s": setting.rounds * setting.stall_prompt_tokens / read_s,
        "before, median ms": _median_ms(steps.before for steps in rounds),
        "after, median ms": _median_ms(steps.after for steps in rounds),
        "beside, median ms": _median_ms(steps.beside for steps in rounds),
        "worst ms": max(step.gap_s for steps in rounds for step in steps.beside) * 1e3,
    }
    return {"rows": [row], "ratios": {"p99 / undisturbed": p99}}


async def _disturb(
    vitrine: Vitrine, setting: Setting, rng: Random, vocab_size: int
) -> tuple[list[Trace], Trace]:
    """The streams, which write before, beside and after the long prompt, and that one."""

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
    await _written(streams, setting.calm_tokens)
    long = await run_job(engine, model, Job(prompt(setting.stall_prompt_tokens), 1))
    await _written(streams, setting.calm_tokens)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return streams, long


async def _written(streams: list[Trace], num_tokens: int) -> None:
    """Return when each has written so many more."""
    wanted = [len(stream.token_s) + num_tokens for stream in streams]
    while any(len(s.token_s) < num for s, num in zip(streams, wanted, strict=True)):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def steps_of(streams: list[Trace], begin_s: float, end_s: float) -> Steps:
    """The streams' steps, parted by when a long prompt was sent, and had been read."""
    first_s = max(stream.token_s[0] for stream in streams)  # before, their own prompts were read
    steps = Steps([], [], [])
    for stream in streams:
        for number, (from_s, at_s) in enumerate(pairwise(stream.token_s)):
            step = Step(number, at_s - from_s)
            if first_s < from_s and at_s <= begin_s:
                steps.before.append(step)
            elif begin_s < at_s <= end_s:
                steps.beside.append(step)
            elif from_s >= end_s:
                steps.after.append(step)
    return steps


def _middle(steps: list[Step]) -> tuple[float, float]:
    """The median number, and the median seconds."""
    return median(s.number for s in steps), median(s.gap_s for s in steps)


def _median_ms(rounds: Iterable[list[Step]]) -> float:
    return median(step.gap_s for steps in rounds for step in steps) * 1e3


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[-1]
