"""Rows of figures for people, and the same as JSON for programs."""

import json
from pathlib import Path

from inference.cli.table import Row, machine, show

__all__ = ["Row", "machine", "save", "show", "write"]


def save(name: str, result: Row, folder: Path = Path("var/benchmarks")) -> None:
    """Write a result beside the earlier ones and say where."""
    write(folder / f"{name}.json", result)


def write(path: Path, result: Row) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2))
    print(f"\nJSON: {path}")
