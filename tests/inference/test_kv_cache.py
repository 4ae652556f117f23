"""The books balance, and a slab gives back what was written, however it grew."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.kv_cache import SlabKV


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 260), st.booleans()), max_size=40
    )
)
@settings(max_examples=100, deadline=None)
def test_used_equals_reserved_for_any_history(steps: list[tuple[str, int, bool]]) -> None:
    kv = SlabKV(capacity_tokens=512, max_context_tokens=256)
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


@given(chunks=st.lists(st.integers(1, 70), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_a_slab_holds_what_was_written_across_growth(chunks: list[int]) -> None:
    kv = SlabKV(capacity_tokens=4096, max_context_tokens=1024)
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


def test_a_sequence_that_does_not_fit_leaves_no_trace() -> None:
    kv = SlabKV(capacity_tokens=128, max_context_tokens=128)
    assert kv.reserve("a", 100)
    assert not kv.reserve("b", 64)
    kv.release("b")
    kv.check()
    kv.release("a")
    assert kv.reserve("b", 64)
