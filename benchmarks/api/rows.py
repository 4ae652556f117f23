"""Rounds as rows, and Vitrine's in times of a peer's."""

import statistics
from collections.abc import Sequence

from benchmarks.api.rounds import Round
from benchmarks.table import Row

ADDED, CPU = "added ms", "CPU µs/token"


def row(name: str, count: int, rounds: Sequence[Round], without: Sequence[Round]) -> Row:
    """`without` are those of what stands behind it, asked directly."""
    ttft_ms, without_ms = _ttft(rounds), _ttft(without)
    return {
        "system": name,
        "streams": count,
        "ttft ms p50": ttft_ms,
        "without ms": without_ms,
        ADDED: None if ttft_ms is None or without_ms is None else ttft_ms - without_ms,
        CPU: cpu(rounds, "all"),
        "answers whole": f"{sum(each.num_whole for each in rounds)}/{count * len(rounds)}",
    }


def ratios(rows: Sequence[Row], own: Sequence[str], peers: Sequence[str]) -> list[Row]:
    """At each number of streams; less than 1 is less than the peer."""
    found = {(each["streams"], each["system"]): each for each in rows}
    return [
        {
            "ratio": f"{name} / {peer}",
            "streams": count,
            ADDED: _over(found[count, name][ADDED], found[count, peer][ADDED]),
            CPU: _over(found[count, name][CPU], found[count, peer][CPU]),
        }
        for count in dict.fromkeys(each["streams"] for each in rows)
        for peer in peers
        for name in own
    ]


def _ttft(rounds: Sequence[Round]) -> float | None:
    known = [each.ttft_ms for each in rounds if each.ttft_ms is not None]
    return statistics.median(known) if known else None


def cpu(rounds: Sequence[Round], part: str) -> float:
    return statistics.median(each.cpu_us[part] for each in rounds)


def _over(own: float | None, other: float | None) -> float | None:
    """None where one is no quantity: what is added may be less than nothing, for once."""
    return own / other if own and other and min(own, other) > 0 else None
