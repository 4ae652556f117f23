"""Chores beside somebody's answer: what of the processors they leave to others."""

import os
from contextlib import suppress
from pathlib import Path


def give_way(pid: int) -> None:
    """Make the session that the process leads as nice as we are.

    Where Linux shares the processors out by sessions (autogroup, see sched(7)), a process that is nice
    is nice to its own session only.
    """
    niceness = os.nice(0)
    if niceness > 0:
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
