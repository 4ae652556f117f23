"""All streams at once, of one system after the other: by turns, so that each has the same machine."""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from benchmarks.api.client import Caller, Endpoint
from benchmarks.chat.scripted import loop
from benchmarks.processes import cpu_s
from benchmarks.table import Row

_WARM_TOKENS = 5
PAUSE_S = 1.0  # what somebody does after the last word is not charged to the next one


@dataclass(frozen=True)
class Round:
    """Of the answers that came whole, if any did; CPU is per token that came."""

    ttft_ms: float | None
    cpu_us: dict[str, float]
    num_whole: int


@dataclass(frozen=True)
class System:
    """Answers at an endpoint; `parts` are the processes whose CPU is told, by name."""

    name: str
    endpoint: Endpoint
    parts: Mapping[str, Callable[[], list[psutil.Process]]]

    def measure(self, count: int, num_tokens: int = loop.NUM_TOKENS) -> Round:
        return asyncio.run(self._measure(count, num_tokens))

    async def _measure(self, count: int, num_tokens: int) -> Round:
        callers = [Caller(self.endpoint, num_tokens) for _ in range(count)]
        parts = {name: processes() for name, processes in self.parts.items()}
        before_s = {name: cpu_s(processes) for name, processes in parts.items()}
        await asyncio.gather(*(caller.ask() for caller in callers))
        spent_s = {name: cpu_s(processes) - before_s[name] for name, processes in parts.items()}
        texts = [caller.text for caller in callers]
        num_came = sum(len(text.split()) for text in texts) or 1
        wanted = loop.text_of(num_tokens).rstrip()
        ttft_s = [
            caller.ttft_s
            for caller, text in zip(callers, texts, strict=True)
            if text.rstrip() == wanted
        ]
        return Round(
            statistics.median(ttft_s) * 1e3 if ttft_s else None,
            {name: seconds / num_came * 1e6 for name, seconds in spent_s.items()},
            len(ttft_s),
        )

    def warm(self) -> None:
        """A first answer, a short one; an AssertionError shows what came in its place."""
        caller = Caller(self.endpoint, _WARM_TOKENS)
        asyncio.run(caller.ask())
        assert caller.text.rstrip() == loop.text_of(_WARM_TOKENS).rstrip(), caller.response[:2000]


def idle_row(system: System, first_answer_s: float) -> Row:
    """Pages that several processes share count once."""
    processes = system.parts["all"]()
    pss = sum(each.memory_full_info().pss for each in processes)
    return {
        "system": system.name,
        "start to first answer s": first_answer_s,
        "idle MiB": pss / 2**20,
        "processes": len(processes),
    }


Measure = Callable[[int], Round]


def by_turns(
    measures: Mapping[str, Measure], count: int, num_rounds: int, pause_s: float = PAUSE_S
) -> dict[str, list[Round]]:
    found: dict[str, list[Round]] = {name: [] for name in measures}
    for _ in range(num_rounds):
        for name, measure in measures.items():
            time.sleep(pause_s)
            found[name].append(measure(count))
            _tell(name, count, found[name][-1])
    return found


def _tell(name: str, count: int, found: Round) -> None:
    """All rounds take a quarter of an hour."""
    ttft = "no answer" if found.ttft_ms is None else f"{found.ttft_ms:,.0f} ms"
    print(f"{name}, {count} at once: {ttft}, {found.cpu_us['all']:,.0f} µs", file=sys.stderr)
