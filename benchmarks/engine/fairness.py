"""Many users: does one with a lot to do keep another one waiting, and do equals get the same?"""

import asyncio
from random import Random
from statistics import median

from benchmarks import table
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import Vitrine
from inference.cli.jobs import Job, Trace, random_prompt, run_job, run_jobs


def measure_fairness(vitrine: Vitrine, setting: Setting, vocab_size: int) -> table.Row:
    rng = Random(f"{setting.seed} fairness")

    def job(user: str) -> Job:
        prompt = random_prompt(rng, setting.fair_prompt_tokens, vocab_size)
        return Job(prompt, setting.fair_output_tokens, user=user)

    alone_s, beside_s, jain = [], [], []
    for _ in range(setting.rounds):
        alone_s.append(vitrine.run([job("modest")])[0].ttft_s)
        greedy = [job("greedy") for _ in range(setting.greedy_requests)]
        beside = vitrine.loop.run_until_complete(_join(vitrine, greedy, job("modest")))
        beside_s.append(beside.ttft_s)
        equals = [
            job(f"equal {number}")
            for _ in range(setting.requests_per_equal_user)
            for number in range(setting.equal_users)
        ]
        jain.append(jain_index(vitrine.run(equals)))
    alone_ms, beside_ms = median(alone_s) * 1e3, median(beside_s) * 1e3
    row = {
        "system": vitrine.name,
        "greedy requests": setting.greedy_requests,
        "TTFT alone ms": alone_ms,
        "TTFT beside ms": beside_ms,
        "equal users": setting.equal_users,
        "Jain index": median(jain),
    }
    return {"rows": [row], "ratios": {"TTFT beside / alone": beside_ms / alone_ms}}


async def _join(vitrine: Vitrine, greedy: list[Job], modest: Job) -> Trace:
    """One user's request when another's have taken all places."""
    crowd = asyncio.create_task(run_jobs(vitrine.engine, vitrine.model, greedy))
    while vitrine.engine.stats(vitrine.model).num_running < len(greedy):
        if vitrine.engine.stats(vitrine.model).num_waiting:
            break
        await asyncio.sleep(0.005)
    trace = await run_job(vitrine.engine, vitrine.model, modest)
    await crowd
    return trace


def jain_index(traces: list[Trace]) -> float:
    """(Σx)² / n·Σx² of the tokens that users had when the first of them had all: 1 is equal.

    Source: Jain, Chiu and Hawe 1984.
    """
    ends: dict[str, float] = {}
    for trace in traces:
        user = trace.job.user
        ends[user] = max(ends.get(user, 0.0), trace.token_s[-1])
    first_end_s = min(ends.values())
    had = dict.fromkeys(ends, 0)
    for trace in traces:
        had[trace.job.user] += sum(time_s <= first_end_s for time_s in trace.token_s)
    return sum(had.values()) ** 2 / (len(had) * sum(x * x for x in had.values()))
