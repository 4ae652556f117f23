"""How much memory this process may still take."""

from pathlib import Path

import psutil

from inference.config import WORKER_NAME


def available_bytes() -> int:
    """Free memory of the machine, or of the control group where that is less."""
    available = int(psutil.virtual_memory().available)
    group_free = _control_group_free_bytes(Path("/sys/fs/cgroup"))
    return available if group_free is None else min(available, group_free)


def loadable_bytes() -> int:
    """What there would be if all models slept, whichever process has loaded them."""
    workers = [p for p in psutil.process_iter(["name"]) if p.info["name"] == WORKER_NAME]
    return available_bytes() + sum(_own_bytes(Path(f"/proc/{p.pid}")) for p in workers)


def _own_bytes(process: Path) -> int:
    """What the kernel has back when a process ends: neither what forks share nor pages of files."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has ended, or it is another user's
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def _control_group_free_bytes(root: Path) -> int | None:
    """None: no limit, or no version 2 hierarchy."""
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    if limit == "max":
        return None
    return max(0, int(limit) - max(0, used - _reclaimable_bytes(root)))


def _reclaimable_bytes(root: Path) -> int:
    """What the kernel drops before it refuses memory: a pulled model is in the page cache, say."""
    try:
        stat = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
        return int(stat.get("inactive_file", 0)) + int(stat.get("slab_reclaimable", 0))
    except (OSError, ValueError):
        return 0
