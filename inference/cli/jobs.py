"""Known amounts of work for an engine, and when each of their tokens came."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from time import monotonic
from typing import Any

from inference.engine import Engine
from inference.errors import GenerationFailed
from inference.messages import Failed, Finished, GenerateRequest, SamplingParams, Tokens

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt and how many tokens shall follow it, whatever they are, drawn by `sampling`."""

    prompt_ids: tuple[int, ...]
    num_output: int
    user: str = ""
    cache_salt: str = ""
    sampling: tuple[tuple[str, Any], ...] = (("temperature", 0.0),)


@dataclass(slots=True)
class Trace:
    """One job as it went; times are of the monotonic clock, which all processes share.

    `ids` are there where we generated them.
    """

    job: Job
    started_s: float
    token_s: list[float] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    num_cached: int = 0
    failure: Failed | None = None

    @property
    def ttft_s(self) -> float:
        return self.token_s[0] - self.started_s

    @property
    def gaps_s(self) -> list[float]:
        """From each token to the next."""
        return [b - a for a, b in zip(self.token_s, self.token_s[1:], strict=False)]


@dataclass(frozen=True, slots=True)
class Span:
    """So many tokens in some stretch of time."""

    begin_s: float
    end_s: float
    num_tokens: int

    @property
    def tokens_per_s(self) -> float:
        return self.num_tokens / (self.end_s - self.begin_s)


def random_prompt(rng: Random, num_tokens: int, vocab_size: int) -> tuple[int, ...]:
    """Ids of all kinds: equal ones, zeros most of all, would be computed faster."""
    return tuple(rng.randrange(vocab_size) for _ in range(num_tokens))


async def run_job(engine: Engine, model: str, job: Job, trace: Trace | None = None) -> Trace:
    """Run one job; a refusal or a failure is in its trace. A given one can be watched meanwhile."""
    params = SamplingParams(max_tokens=job.num_output, ignore_eos=True, **dict(job.sampling))
    request = GenerateRequest(
        request_id=f"job-{next(_numbers)}",
        model=model,
        prompt_ids=job.prompt_ids,
        params=params,
        user=job.user,
        cache_salt=job.cache_salt,
    )
    trace = trace or Trace(job, monotonic())
    async for update in engine.generate(request):
        match update:
            case Tokens(ids=ids):
                trace.token_s += [monotonic()] * len(ids)
                trace.ids += ids
            case Finished(usage=usage):
                trace.num_cached = usage.cached_tokens
            case Failed():
                trace.failure = update
    return trace


async def run_jobs(engine: Engine, model: str, jobs: Iterable[Job]) -> list[Trace]:
    """Run jobs at once. Raises GenerationFailed if one of them does not end well."""
    traces = await asyncio.gather(*(run_job(engine, model, job) for job in jobs))
    for trace in traces:
        if trace.failure is not None:
            raise GenerationFailed(trace.failure.message)
    return traces


def prefill_span(traces: Sequence[Trace]) -> Span:
    """All prompts, up to the last one's first token."""
    return Span(
        min(trace.started_s for trace in traces),
        max(trace.token_s[0] for trace in traces),
        sum(len(trace.job.prompt_ids) - trace.num_cached for trace in traces),
    )


def decode_span(traces: Sequence[Trace]) -> Span:
    """The steps in which every job got a token: behind all first tokens, until one has ended.

    Counted by the steps of the one that ends first, so that no step is counted in part. Jobs so
    short that one ended before all were there have no such steps: theirs is all decoding.
    """
    all_there_s = max(trace.token_s[0] for trace in traces)
    first = min(traces, key=lambda trace: trace.token_s[-1])
    steps = [time_s for time_s in first.token_s if time_s >= all_there_s]
    if steps and steps[0] < steps[-1]:
        return Span(steps[0], steps[-1], len(traces) * (len(steps) - 1))
    begin_s = min(trace.token_s[0] for trace in traces)
    end_s = max(trace.token_s[-1] for trace in traces)
    return Span(begin_s, end_s, sum(len(trace.token_s) - 1 for trace in traces))


def whole_span(traces: Sequence[Trace]) -> Span:
    """All output, from the first job's start to the last one's end."""
    return Span(
        min(trace.started_s for trace in traces),
        max(trace.token_s[-1] for trace in traces),
        sum(len(trace.token_s) for trace in traces),
    )
