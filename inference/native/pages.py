"""Memory for packed weights, in huge pages where the system lends them.

A step reads every weight once, so with pages of 4 KB it looks up a translation for each of them, on a
virtual machine through two tables. Weights lie one behind the other in large mappings: most layers are
smaller than a huge page.
"""

import mmap
import threading
from contextlib import suppress

import torch
from torch import Tensor

_LINE = 64
_HUGE_PAGE = 2 << 20
_MAPPING_BYTES = 64 << 20  # address space: memory is taken as it is written to


class _Arena:
    """Hands out a mapping piece by piece; it goes when the last tensor in it has gone."""

    def __init__(self) -> None:
        self._rest = torch.empty(0, dtype=torch.int8)
        self._lock = threading.Lock()

    def take(self, num_bytes: int) -> Tensor:
        needed = -(-num_bytes // _LINE) * _LINE
        if needed >= _MAPPING_BYTES:
            return _mapping(needed)[:num_bytes]
        with self._lock:
            if needed > len(self._rest):
                self._rest = _mapping(_MAPPING_BYTES)
            taken, self._rest = self._rest[:num_bytes], self._rest[needed:]
        return taken


def _mapping(num_bytes: int) -> Tensor:
    """int8, zeros, from the beginning of a huge page."""
    memory = mmap.mmap(-1, num_bytes + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a kernel without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = torch.frombuffer(memory, dtype=torch.int8)
    begin = -whole.data_ptr() % _HUGE_PAGE
    return whole[begin : begin + num_bytes]


_arena = _Arena()


def aligned_zeros(num_bytes: int) -> Tensor:
    """int8 (num_bytes,), at the beginning of a cache line."""
    with torch.inference_mode(False):  # or whoever comes first decides for all that lie beside it
        return _arena.take(num_bytes)
