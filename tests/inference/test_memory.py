"""Free memory, as the control group counts it: on its files as the kernel writes them."""

from pathlib import Path

import psutil
import pytest

from inference import memory

GIB = 2**30


def _group(root: Path, **files: str) -> Path:
    for name, content in files.items():
        (root / name.replace("_", ".")).write_text(content + "\n")
    return root


def _stat(**values: int) -> str:
    return "\n".join(f"{name} {value}" for name, value in values.items())


def test_the_page_cache_is_not_counted_as_used(tmp_path: Path) -> None:
    """A model that was pulled a minute ago fills the cache, and still fits."""
    stat = _stat(anon=GIB, file=6 * GIB, inactive_file=5 * GIB, slab_reclaimable=GIB // 2)
    group = _group(tmp_path, memory_max=str(8 * GIB), memory_current=str(7 * GIB), memory_stat=stat)
    assert memory._control_group_free_bytes(group) == GIB + 5 * GIB + GIB // 2


@pytest.mark.parametrize("stat", [None, "", "inactive_file", "inactive_file many"])
def test_without_such_numbers_all_of_it_is_used(stat: str | None, tmp_path: Path) -> None:
    group = _group(tmp_path, memory_max=str(8 * GIB), memory_current=str(7 * GIB))
    if stat is not None:
        _group(group, memory_stat=stat)
    assert memory._control_group_free_bytes(group) == GIB


def test_a_group_over_its_limit_has_nothing_free(tmp_path: Path) -> None:
    group = _group(tmp_path, memory_max=str(GIB), memory_current=str(2 * GIB))
    assert memory._control_group_free_bytes(group) == 0


def test_more_reclaimable_than_used_frees_no_more_than_the_limit(tmp_path: Path) -> None:
    stat = _stat(inactive_file=4 * GIB)
    group = _group(tmp_path, memory_max=str(GIB), memory_current=str(GIB), memory_stat=stat)
    assert memory._control_group_free_bytes(group) == GIB


@pytest.mark.parametrize(
    "files", [{}, {"memory_max": "max", "memory_current": "5"}, {"memory_max": "5"}]
)
def test_no_limit_is_no_number(files: dict[str, str], tmp_path: Path) -> None:
    assert memory._control_group_free_bytes(_group(tmp_path, **files)) is None


_SERVICE = "0::/system.slice/vitrine.service\n"


def _tree(root: Path, membership: str, **groups: tuple[int, int]) -> int | None:
    """What is free of groups that are named by their last parts, each with its limit and its use."""
    (root / "membership").write_text(membership)
    found = memory.control_groups(root / "membership", root / "fs")
    version = "memory.limit_in_bytes", "memory.usage_in_bytes"
    if membership.startswith("0:"):
        version = "memory.max", "memory.current"
    for group in found:
        if group.name in groups:
            group.mkdir(parents=True, exist_ok=True)
            for name, number in zip(version, groups[group.name], strict=True):
                (group / name).write_text(f"{number}\n")
    free = [memory._control_group_free_bytes(group) for group in found]
    return min((num_bytes for num_bytes in free if num_bytes is not None), default=None)


@pytest.mark.parametrize(
    ("membership", "groups", "free"),
    [
        (_SERVICE, {"vitrine.service": (8 * GIB, GIB)}, 7 * GIB),
        (_SERVICE, {"vitrine.service": (8 * GIB, GIB), "system.slice": (4 * GIB, GIB)}, 3 * GIB),
        (_SERVICE, {"vitrine.service": (2 * GIB, GIB), "fs": (4 * GIB, GIB)}, GIB),
        (_SERVICE, {}, None),
        ("0::/\n", {"fs": (4 * GIB, GIB)}, 3 * GIB),
        ("3:cpu:/a\n4:memory:/docker/a\n0::/\n", {"a": (4 * GIB, GIB)}, 3 * GIB),
        ("4:cpu,memory:/docker/a\n", {"memory": (4 * GIB, GIB)}, 3 * GIB),  # seen from inside
        ("nonsense\n", {}, None),
    ],
)
def test_the_least_of_a_group_and_those_around_it_counts(
    membership: str, groups: dict[str, tuple[int, int]], free: int | None, tmp_path: Path
) -> None:
    assert _tree(tmp_path, membership, **groups) == free


def test_an_unlimited_group_of_version_1_takes_nothing_away(tmp_path: Path) -> None:
    stat = _stat(inactive_file=GIB, total_inactive_file=2 * GIB)
    group = _group(tmp_path, memory_stat=stat)
    (group / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")
    (group / "memory.usage_in_bytes").write_text(f"{3 * GIB}\n")
    free = memory._control_group_free_bytes(group)
    assert free == 2**63 - 4096 - GIB


def test_a_machine_without_control_groups_has_none_that_limits(tmp_path: Path) -> None:
    (root,) = memory.control_groups(tmp_path / "none", tmp_path)
    assert memory._control_group_free_bytes(root) is None


def test_this_machine_has_some() -> None:
    assert 0 < memory.available_bytes() <= psutil.virtual_memory().total
