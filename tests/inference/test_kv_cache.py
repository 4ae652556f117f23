"""The books balance, and a cache gives back what was written, however it grew and whoever shared it.

In either layout; what only slabs do is tested at the end.
"""

from collections.abc import Callable
from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.block_pool import BLOCK_TOKENS
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.paged_kv import PagedKV
from tests.inference.cache_stories import Story, play


def _slabs(capacity_tokens: int, max_context_tokens: int) -> KVCache:
    return SlabKV(capacity_tokens, max_context_tokens)


def _pages(capacity_tokens: int, max_context_tokens: int) -> KVCache:
    return PagedKV(capacity_tokens // BLOCK_TOKENS, max_context_tokens)


Make = Callable[[int, int], KVCache]
in_both_layouts = pytest.mark.parametrize("make", [_slabs, _pages])


@in_both_layouts
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 260), st.booleans()), max_size=40
    )
)
@settings(max_examples=100, deadline=None)
def test_used_equals_reserved_for_any_history(
    make: Make, steps: list[tuple[str, int, bool]]
) -> None:
    kv = make(512, 256)
    for name, num_tokens, release in steps:
        if release:
            kv.release(name)
        else:
            before = kv.used_tokens
            if not kv.reserve(name, num_tokens):
                assert kv.used_tokens == before
        kv.check()
    for name in "abcd":
        kv.release(name)
    assert kv.used_tokens == 0


@in_both_layouts
@given(chunks=st.lists(st.integers(1, 70), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_what_was_written_is_there_across_growth(make: Make, chunks: list[int]) -> None:
    kv = make(4096, 1024)
    written: list[torch.Tensor] = []
    start = 0
    for num_tokens in chunks:
        assert kv.reserve("s", start + num_tokens)
        keys = torch.randn(2, num_tokens, 4)
        written.append(keys)
        all_keys, all_values = kv.extend(0, "s", start, keys, keys[..., :3] * 2)
        start += num_tokens
        expected = torch.cat(written, dim=1)
        assert torch.equal(all_keys, expected)
        assert torch.equal(all_values, expected[..., :3] * 2)


@in_both_layouts
def test_a_sequence_that_does_not_fit_leaves_no_trace(make: Make) -> None:
    kv = make(128, 128)
    assert kv.reserve("a", 100)
    assert not kv.reserve("b", 64)
    kv.release("b")
    kv.check()
    kv.release("a")
    assert kv.reserve("b", 64)


def _values(token_ids: list[int]) -> torch.Tensor:
    """Keys that depend on every token up to their own, as a model's do: (1, tokens, 1)."""
    return torch.tensor(list(accumulate(token_ids, lambda h, t: (h * 31 + t) % 9973))).view(
        1, -1, 1
    )


class _Story(Story):
    """Over two layers."""

    def __init__(self, capacity_tokens: int, make: Make = _slabs) -> None:
        super().__init__(make(capacity_tokens, 256))

    def compute(self, name: str, token_ids: list[int], num_cached: int, chunk: int) -> None:
        new = _values(token_ids)[:, num_cached:]
        for layer in (0, 1):
            keys, values = self.kv.extend(layer, name, num_cached, new + layer, new * 2)
            assert torch.equal(keys, _values(token_ids) + layer), "also what came from the cache"
            assert torch.equal(values, _values(token_ids) * 2)


@in_both_layouts
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_used_again_is_what_was_computed(make: Make, data: st.DataObject) -> None:
    play(_Story(data.draw(st.sampled_from((256, 640, 4096))), make), data)


def test_the_next_turn_takes_the_last_one_over() -> None:
    story = _Story(capacity_tokens=4096)
    turn = list(range(100))
    story.come("a", turn, "alice")
    story.go("a", is_reusable=True)
    before = story.kv.cached_tokens
    story.come("b", [*turn, 5, 6, 7], "alice")
    assert story.num_cached == 100
    assert story.kv.cached_tokens == 0, "taken over, not copied"
    assert story.kv.used_tokens >= before
    story.come("c", [*turn, 9], "charlie")
    assert story.num_cached == 100, "nothing of Alice's is there for Charlie"


def test_a_short_common_beginning_leaves_the_long_chat_where_it_is() -> None:
    story = _Story(capacity_tokens=4096)
    system, chat = [3] * 32, list(range(200))
    story.come("a", system + chat, "")
    story.go("a", is_reusable=True)
    story.come("b", [*system, 250, 251], "")
    assert story.num_cached == 32
    story.come("c", [*system, *chat, 1], "")
    assert story.num_cached == 32 + 232


def test_the_least_recently_used_makes_room_first() -> None:
    story = _Story(capacity_tokens=256)
    for name, token in (("a", 1), ("b", 2)):
        story.come(name, [token] * 100, "")
        story.go(name, is_reusable=True)
    story.come("c", [3] * 100, "")
    story.go("c", is_reusable=True)
    for name, token, num_cached in (("b2", 2, 99), ("a2", 1, 0)):
        before = story.num_cached
        story.come(name, [token] * 100, "")
        assert story.num_cached - before == num_cached
        story.go(name, is_reusable=False)


def test_slabs_give_no_room_that_was_not_reserved() -> None:
    kv = SlabKV(256, 256)
    assert kv.reserve("a", 64)
    new = torch.zeros(1, 1, 16)
    assert kv.with_room(0, "a", 63, new, new)[0].shape == (1, 64, 16)
    with pytest.raises(AssertionError, match="reserved"):
        kv.with_room(0, "a", 64, new, new)
    with pytest.raises(AssertionError, match="reserved"):
        kv.with_room(1, "a", 64, new, new)
