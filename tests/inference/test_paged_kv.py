"""The layout that kernels read: pages, tables and slots, beside what `extend` makes of them."""

from itertools import count
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inference.block_pool import BLOCK_TOKENS, NULL_BLOCK
from inference.paged_kv import PagedKV

SHAPES = [(2, 4, 3), (1, 8, 8)]  # of each layer: kv_heads, head_dim and value_dim


def _read(pages: Tensor, table: Tensor, num_tokens: int) -> Tensor:
    """As a kernel does: block by block, through the table -> (kv_heads, tokens, dim)."""
    rows = [pages[int(block)] for block in table]
    return torch.cat(rows)[:num_tokens].transpose(0, 1)


@given(
    chunks=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40)), min_size=1, max_size=12)
)
@settings(max_examples=60, deadline=None)
def test_tables_and_slots_lead_to_what_was_written(chunks: list[tuple[str, int]]) -> None:
    kv = PagedKV(40, 640)
    written: dict[tuple[str, int, int], Tensor] = {}
    lengths: dict[str, int] = {}
    numbers = count()
    for name, num_new in chunks:
        start = lengths.get(name, 0)
        if not kv.reserve(name, start + num_new):
            continue
        lengths[name] = start + num_new
        for layer, (heads, *dims) in enumerate(SHAPES):
            new = [torch.full((heads, num_new, dim), float(next(numbers))) for dim in dims]
            found = kv.extend(layer, name, start, new[0], new[1])
            for which in (0, 1):
                key = (name, layer, which)
                whole = torch.cat([written[key], new[which]], dim=1) if start else new[which]
                written[key] = whole
                assert torch.equal(found[which], whole)
    for (name, layer, which), whole in written.items():
        pages = kv.layers[layer][which]
        assert torch.equal(_read(pages, kv.block_table(name), lengths[name]), whole)
        slots = kv.slot_mapping(name, 0, lengths[name])
        assert torch.equal(pages.flatten(0, 1)[slots].transpose(0, 1), whole)
        assert not pages[NULL_BLOCK].any(), "nobody's, and never anything but numbers"
    assert kv.bytes_per_token("a") == 4 * sum(heads * (k + v) for heads, k, v in SHAPES)


def test_what_is_kept_in_8_bits_takes_a_quarter_of_float32_and_is_near() -> None:
    kv = PagedKV(10, 160, kept_as=torch.float8_e4m3fn)
    assert kv.reserve("a", 20)
    torch.manual_seed(1)
    keys, values = torch.randn(2, 20, 8) * 10, torch.randn(2, 20, 4)
    keys[0, 0, 0], keys[1, 3, 2] = 1e4, -1e4
    found = kv.extend(0, "a", 0, keys, values)
    for back, new in zip(found, (keys.clamp(-448, 448), values), strict=True):
        assert back.dtype == torch.float32
        assert ((back - new).abs() <= new.abs() * 2**-4 + 2**-10).all()
    assert kv.bytes_per_token("a") == 2 * (8 + 4)


class NoFloatsMoved(TorchDispatchMode):
    """As on GPUs for which torch has no such operations on 8 bits of floating point."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func.overloadpacket in _MOVES:
            for one in tree_leaves((args, kwargs)):
                assert not isinstance(one, Tensor) or one.dtype != torch.float8_e4m3fn, func
        return func(*args, **(kwargs or {}))


_MOVES = {
    torch.ops.aten.index_select,
    torch.ops.aten.index_put_,
    torch.ops.aten.index_copy_,
    torch.ops.aten.fill_,
}


def test_what_is_kept_in_8_bits_is_moved_as_bytes() -> None:
    kv = PagedKV(10, 160, kept_as=torch.float8_e4m3fn)
    assert kv.reserve("a", 20)
    new = torch.arange(16.0).expand(2, 16).unsqueeze(-1)
    with NoFloatsMoved():
        keys, values = kv.extend(0, "a", 0, new, -new)
    assert torch.equal(keys, -values)
    assert torch.equal(keys, new), "small whole numbers are kept as they are"


def test_a_batch_of_tables_is_filled_up_with_nobodys_block() -> None:
    kv = PagedKV(10, 160)
    for name, num_tokens in (("a", 40), ("b", 1)):
        assert kv.reserve(name, num_tokens)
    tables, width = kv.flat_tables(["b", "a"])
    assert tables.itemsize == kv.block_table("a").itemsize == 4
    assert width == 3
    assert tables.tolist() == [*kv.blocks("b"), NULL_BLOCK, NULL_BLOCK, *kv.blocks("a")]
    assert NULL_BLOCK not in kv.blocks("a")


def test_slots_beyond_32_bits_are_right() -> None:
    """Books only: no such pool is made here."""
    num_blocks = 2**31 // BLOCK_TOKENS + 8
    kv = PagedKV(4, 64)
    assert kv.reserve("a", 32)
    kv._tables["a"].blocks[1] = num_blocks  # as of a pool of so many
    slots = kv.slot_mapping("a", 15, 18)
    assert slots.dtype == torch.int64
    assert slots.tolist()[1:] == [num_blocks * BLOCK_TOKENS, num_blocks * BLOCK_TOKENS + 1]


def test_a_token_without_room_is_written_nowhere() -> None:
    kv = PagedKV(4, 64)
    assert kv.reserve("a", 16)
    new = torch.ones(1, 17, 2)
    with pytest.raises(IndexError):
        kv.extend(0, "a", 0, new, new)


def test_siblings_read_one_copy() -> None:
    kv = PagedKV(20, 320)
    prompt = list(range(40))
    keys = torch.randn(2, 40, 4)
    kv.attach("a", prompt, "")
    assert kv.reserve("a", 40)
    kv.extend(0, "a", 0, keys, keys)
    kv.share("a", prompt, "")
    assert kv.attach("b", prompt, "") == 32
    assert kv.reserve("b", 40)
    new = torch.randn(2, 8, 4)
    found, _ = kv.extend(0, "b", 32, new, new)
    assert torch.equal(found, torch.cat([keys[:, :32], new], dim=1))
    again, _ = kv.extend(0, "a", 39, keys[:, 39:], keys[:, 39:])
    assert torch.equal(again, keys), "b has written into blocks of its own"
    assert kv.used_tokens == 4 * BLOCK_TOKENS
