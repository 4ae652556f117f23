"""How much memory this process may still take."""

from pathlib import Path

import psutil


def available_bytes() -> int:
    """Free memory of the machine, or of the control group where that is less."""
    available = int(psutil.virtual_memory().available)
    group_free = _control_group_free_bytes(Path("/sys/fs/cgroup"))
    return available if group_free is None else min(available, group_free)


def _control_group_free_bytes(root: Path) -> int | None:
    """None: no limit, or no version 2 hierarchy."""
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)
