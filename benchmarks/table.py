"""Rows of figures for people, and the same as JSON for programs."""

import json
import os
import platform
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def machine() -> Row:
    """What the figures were measured on."""
    cores = len(os.sched_getaffinity(0))
    return {"cpu": _cpu_name(), "cores": cores, "python": platform.python_version()}


def show(title: str, rows: list[Row]) -> None:
    """Print rows of equal keys as one aligned table."""
    if not rows:
        return
    heads = list(rows[0])
    cells = [heads, *([_cell(row[head]) for head in heads] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    print(f"\n{title}")
    for number, line in enumerate(cells):
        first, *rest = zip(line, widths, strict=True)
        print(first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest), sep="  ")
        if number == 0:
            print("  ".join("-" * width for width in widths))


def save(name: str, result: Row, folder: Path = Path("var/benchmarks")) -> None:
    """Write a result beside the earlier ones and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(result, indent=2))
    print(f"\nJSON: {path}")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
