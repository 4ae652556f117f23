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


def test_this_machine_has_some() -> None:
    assert 0 < memory.available_bytes() <= psutil.virtual_memory().total
