"""Figures for people: one aligned table, and what they were measured on."""

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def machine() -> Row:
    """What the figures were measured on."""
    cores = len(os.sched_getaffinity(0))
    return {"cpu": _cpu_name(), "cores": cores, "python": platform.python_version()}


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower one, the median, the upper one."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def show(title: str, rows: list[Row]) -> None:
    """Print rows of equal keys as one aligned table."""
    if not rows:
        return
    heads = list(rows[0])
    cells = [heads, *([_cell(row[head]) for head in heads] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    lines = [f"\n{title}"]
    for number, line in enumerate(cells):
        first, *rest = zip(line, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
        lines.append("  ".join(padded))
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
