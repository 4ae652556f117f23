"""How much memory this process may still take."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from inference.config import WORKER_NAME

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Free memory of the machine, or of a control group that this process is in where that is less."""
    available = int(psutil.virtual_memory().available)
    groups = control_groups(Path("/proc/self/cgroup"), _CONTROL_GROUPS)
    free = [_control_group_free_bytes(group) for group in groups]
    return min([available, *(num_bytes for num_bytes in free if num_bytes is not None)])


def loadable_bytes() -> int:
    """What there would be if all models slept, whichever process has loaded them."""
    return available_bytes() + _held_by(psutil.process_iter())


def own_loadable_bytes() -> int:
    """What there would be if all models of this process slept."""
    return available_bytes() + _held_by(psutil.Process().children(recursive=True))


def control_groups(membership: Path, root: Path) -> list[Path]:
    """The groups under `root` that limit a process's memory, by /proc/PID/cgroup: its own and all that
    this one lies in. Within a container that path may be one outside, and only the top is there.

    Lines are 0::/system.slice/vitrine.service in version 2, 4:memory:/user.slice in version 1.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    found = [root]
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        group = root / "memory" if controllers else root
        found.append(group)
        for part in path.strip("/").split("/"):
            group /= part
            found.append(group)
    return found


def _held_by(processes: Iterable[psutil.Process]) -> int:
    """What the kernel has back when the workers among some processes end."""
    held_bytes = 0
    for process in processes:
        with suppress(psutil.Error):
            if process.name() == WORKER_NAME:
                held_bytes += _own_bytes(Path(f"/proc/{process.pid}"))
    return held_bytes


def _own_bytes(process: Path) -> int:
    """What the kernel has back when a process ends: neither what forks share nor pages of files."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has ended, or it is another user's
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def _control_group_free_bytes(group: Path) -> int | None:
    """None: no limit."""
    for limit_file, used_file in _LIMIT_FILES:
        try:
            limit = (group / limit_file).read_text().strip()
            used = int((group / used_file).read_text())
        except (OSError, ValueError):
            continue
        if not limit.isdecimal():
            return None  # "max"
        return max(0, int(limit) - max(0, used - _reclaimable_bytes(group)))
    return None


_LIMIT_FILES = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),  # version 1
)


def _reclaimable_bytes(group: Path) -> int:
    """What the kernel drops before it refuses memory: a pulled model is in the page cache, say."""
    try:
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # Of version 1 with the groups inside, as version 2 counts by itself.
        inactive = int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))
        return inactive + int(stat.get("slab_reclaimable", 0))
    except (OSError, ValueError):
        return 0
