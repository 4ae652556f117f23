"""Ten times what the engine can do, for a minute: every request ends, and nothing grows."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic

from benchmarks import table
from benchmarks.engine.cpu_meter import CpuMeter
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import Vitrine
from inference.cli.jobs import Job, Trace, random_prompt, run_job, whole_span

_MIB = 2**20


@dataclass(slots=True)
class Crowd:
    """What came of all the requests, and how long the queue was meanwhile."""

    traces: list[Trace] = field(default_factory=list)
    num_waiting: list[int] = field(default_factory=list)


def measure_overload(model: Path, dtype: str, setting: Setting, vocab_size: int) -> table.Row:
    """With an engine of its own, whose queue is short enough to be full soon. Raises Unavailable."""
    limits = {
        "max_waiting_tokens": setting.overload_waiting_tokens,
        "kv_bytes": setting.overload_kv_bytes,
    }
    vitrine = Vitrine(model, dtype, setting, **limits)
    try:
        rng = Random(f"{setting.seed} overload")

        def job() -> Job:
            prompt = random_prompt(rng, setting.overload_prompt_tokens, vocab_size)
            return Job(prompt, setting.overload_output_tokens, user=f"user {rng.randrange(8)}")

        jobs = [job() for _ in range(2 * setting.max_num_sequences)]
        for _ in range(2):  # until buffers, heaps and the cache are as large as they become
            vitrine.run(jobs)
            jobs = [job() for _ in jobs]
        span = whole_span(vitrine.run(jobs))
        capacity_per_s = len(jobs) / (span.end_s - span.begin_s)
        arrivals_per_s = setting.overload_factor * capacity_per_s
        num_jobs = int(arrivals_per_s * setting.overload_s)
        arriving = [job() for _ in range(num_jobs)]
        with CpuMeter(vitrine.pid) as meter:
            crowd = vitrine.loop.run_until_complete(_overrun(vitrine, arriving, arrivals_per_s))
        return _result(vitrine, crowd, meter.rss_bytes, arrivals_per_s, capacity_per_s)
    finally:
        vitrine.close()


async def _overrun(vitrine: Vitrine, jobs: list[Job], arrivals_per_s: float) -> Crowd:
    """Requests come evenly, whether or not earlier ones have ended; then all are waited for."""
    crowd, started_s = Crowd(), monotonic()
    tasks = []
    for number, job in enumerate(jobs):
        await asyncio.sleep(max(0.0, started_s + number / arrivals_per_s - monotonic()))
        tasks.append(asyncio.create_task(run_job(vitrine.engine, vitrine.model, job)))
        crowd.num_waiting.append(vitrine.engine.stats(vitrine.model).num_waiting)
    crowd.traces = await asyncio.gather(*tasks)
    return crowd


def _result(
    vitrine: Vitrine,
    crowd: Crowd,
    rss_bytes: list[int],
    arrivals_per_s: float,
    capacity_per_s: float,
) -> table.Row:
    refused = [t.failure for t in crowd.traces if t.failure and t.failure.code == "overloaded"]
    finished = [t for t in crowd.traces if not t.failure and len(t.token_s) == t.job.num_output]
    # Of three parts the last one against the middle one: what grows for ever still does then.
    third = len(rss_bytes) // 3
    growth = median(rss_bytes[-third or -1 :]) - median(rss_bytes[third : -third or None])
    row = {
        "system": vitrine.name,
        "arrivals/s": arrivals_per_s,
        "capacity/s": capacity_per_s,
        "requests": len(crowd.traces),
        "finished": len(finished),
        "refused": len(refused),
        "lost": len(crowd.traces) - len(finished) - len(refused),
        "retry_after_s missing": sum(not failure.retry_after_s for failure in refused),
        "longest queue": max(crowd.num_waiting, default=0),
        "worker MiB": max(rss_bytes) / _MIB,
        "growth MiB": growth / _MIB,
    }
    share = len(finished) / len(crowd.traces) if crowd.traces else None
    return {"rows": [row], "ratios": {"finished / requests": share}}
