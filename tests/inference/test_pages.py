"""Memory for weights: zeros, on cache lines, nobody else's, and given back."""

import gc
import mmap
from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.native import pages
from inference.native.pages import aligned_zeros


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_pieces_lie_apart(sizes: list[int]) -> None:
    pieces = [aligned_zeros(size) for size in sizes]
    assert [len(piece) for piece in pieces] == sizes
    assert not any(piece.any() for piece in pieces), "whoever had a place before"
    for number, piece in enumerate(pieces):
        assert piece.data_ptr() % 64 == 0
        piece.fill_(number + 1)
    assert all(bool((piece == number + 1).all()) for number, piece in enumerate(pieces))


def test_a_mapping_that_was_begun_for_inference_is_for_everybody() -> None:
    with torch.inference_mode():
        aligned_zeros(pages._MAPPING_BYTES - 64)  # no other has room for it
    assert int(aligned_zeros(64).fill_(1).sum()) == 64


def test_one_larger_than_a_mapping_has_its_own() -> None:
    large = aligned_zeros(pages._MAPPING_BYTES + 1)
    assert len(large) == pages._MAPPING_BYTES + 1
    assert large.data_ptr() % pages._HUGE_PAGE == 0
    assert not large[-1]


def test_a_mapping_goes_with_its_last_piece() -> None:
    before = resident_bytes()
    large = aligned_zeros(2 * pages._MAPPING_BYTES)
    piece = large.fill_(1)[5:]
    del large
    gc.collect()
    assert resident_bytes() > before + 1.5 * pages._MAPPING_BYTES
    del piece
    gc.collect()
    assert resident_bytes() < before + 0.5 * pages._MAPPING_BYTES


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
