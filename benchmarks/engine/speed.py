"""Prefill, decode and the mixed workload: our engine and its peers in turn, A/B/A/B."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from statistics import median
from typing import Any

from benchmarks import table
from benchmarks.engine.ceilings import Ceilings
from benchmarks.engine.cpu_meter import CpuMeter
from benchmarks.engine.floor import Floor, floor_of
from benchmarks.engine.setting import Setting
from benchmarks.engine.systems import System
from inference.cli.jobs import (
    Job,
    Span,
    Trace,
    decode_span,
    prefill_span,
    random_prompt,
    whole_span,
)
from inference.cli.table import quartiles


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs to run at once, which part of the run counts, and the floor of that part."""

    name: str
    jobs: Callable[[Random], list[Job]]
    span: Callable[[Sequence[Trace]], Span]
    floor_s: Callable[[Floor, Sequence[Trace]], float]


@dataclass(slots=True)
class Measured:
    """Of one system and workload, a value per round."""

    per_s: list[float] = field(default_factory=list)
    per_cpu_s: list[float] = field(default_factory=list)
    floor_percent: list[float] = field(default_factory=list)


def prefill_workloads(setting: Setting, vocab_size: int) -> list[Workload]:
    def jobs(rng: Random) -> list[Job]:
        return [Job(random_prompt(rng, setting.prefill_tokens, vocab_size), 1)]

    def floor_s(floor: Floor, traces: Sequence[Trace]) -> float:
        return sum(floor.prefill_s(len(trace.job.prompt_ids)) for trace in traces)

    return [Workload(f"prefill {setting.prefill_tokens}", jobs, prefill_span, floor_s)]


def decode_workloads(setting: Setting, vocab_size: int) -> list[Workload]:
    def workload(num_streams: int) -> Workload:
        def jobs(rng: Random) -> list[Job]:
            prompts = (
                random_prompt(rng, setting.decode_prompt_tokens, vocab_size)
                for _ in range(num_streams)
            )
            return [Job(prompt, setting.decode_tokens) for prompt in prompts]

        return Workload(f"decode {num_streams}", jobs, decode_span, _decode_floor_s)

    return [workload(num_streams) for num_streams in setting.decode_streams]


def _decode_floor_s(floor: Floor, traces: Sequence[Trace]) -> float:
    """As many steps as were counted, each as long as the middle one."""
    num_steps = decode_span(traces).num_tokens // len(traces)
    lengths = [len(t.job.prompt_ids) + t.job.num_output - num_steps // 2 for t in traces]
    return num_steps * floor.decode_step_s(lengths)


def mixed_workloads(setting: Setting, vocab_size: int) -> list[Workload]:
    """Requests of many lengths all at once, in as many slots."""

    def jobs(rng: Random) -> list[Job]:
        return [
            Job(
                random_prompt(rng, rng.randint(*setting.mixed_prompt_tokens), vocab_size),
                rng.randint(*setting.mixed_output_tokens),
            )
            for _ in range(setting.mixed_requests)
        ]

    def floor_s(floor: Floor, traces: Sequence[Trace]) -> float:
        prompts = [len(trace.job.prompt_ids) for trace in traces]
        outputs = [trace.job.num_output for trace in traces]
        return sum(map(floor.prefill_s, prompts)) + floor.decode_s(prompts, outputs)

    return [Workload(f"mixed {setting.mixed_requests}", jobs, whole_span, floor_s)]


def compare(
    systems: Sequence[System],
    workloads: Sequence[Workload],
    setting: Setting,
    shape: dict[str, Any],
    measure_ceilings: Callable[[], Ceilings],
) -> table.Row:
    """Every workload on every system, round by round; rows, and our ratios to the peers."""
    found: dict[tuple[str, str], Measured] = {}
    for workload in workloads:
        ceilings = measure_ceilings()
        for number, system in product(range(setting.rounds), systems):
            jobs = workload.jobs(Random(f"{setting.seed} {workload.name} {number}"))
            measured = found.setdefault((workload.name, system.name), Measured())
            floor = floor_of(shape, system.dtype, ceilings)
            _measure(system, workload, jobs, floor, measured)
    names = [system.name for system in systems]
    return {
        "rows": [_row(*key, measured) for key, measured in found.items()],
        "ratios": {w.name: _ratios(w.name, names, found) for w in workloads},
    }


def _measure(
    system: System, workload: Workload, jobs: list[Job], floor: Floor | None, into: Measured
) -> None:
    with CpuMeter(system.pid) as meter:
        traces = system.run(jobs)
    for trace in traces:
        assert len(trace.token_s) == trace.job.num_output, "every system writes as much"
    span = workload.span(traces)
    cpu_s = meter.cpu_s(span.begin_s, span.end_s)
    into.per_s.append(span.tokens_per_s)
    into.per_cpu_s.append(span.num_tokens / cpu_s)
    if floor is not None:
        into.floor_percent.append(100 * workload.floor_s(floor, traces) / cpu_s)


def _row(workload: str, system: str, measured: Measured) -> table.Row:
    low, middle, high = quartiles(measured.per_s)
    low_cpu, middle_cpu, high_cpu = quartiles(measured.per_cpu_s)
    percent = median(measured.floor_percent) if measured.floor_percent else None
    return {
        "workload": workload,
        "system": system,
        "tok/s": middle,
        "tok/s IQR": high - low,
        "tok/CPU-s": middle_cpu,
        "tok/CPU-s IQR": high_cpu - low_cpu,
        "% of floor": percent,
    }


def _ratios(
    workload: str, names: Sequence[str], found: dict[tuple[str, str], Measured]
) -> table.Row:
    """Ours over each peer's, medians of the ratios within a round: what disturbs one disturbs both."""
    ours = [name for name in names if name.startswith("vitrine")]
    return {
        f"{our} / {peer}": {
            "tok/s": _ratio(found[workload, our].per_s, found[workload, peer].per_s),
            "tok/CPU-s": _ratio(found[workload, our].per_cpu_s, found[workload, peer].per_cpu_s),
        }
        for our, peer in product(ours, (name for name in names if name not in ours))
    }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return median(our / their for our, their in zip(ours, theirs, strict=True))


WORKLOADS = {
    "prefill": prefill_workloads,
    "decode": decode_workloads,
    "mixed": mixed_workloads,
}
