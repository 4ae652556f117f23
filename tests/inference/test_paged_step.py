"""Where a step's tokens are: as the tables of its sequences say, and told to a device in few copies."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inference import attention, model_runner
from inference.block_pool import BLOCK_TOKENS, NULL_BLOCK
from inference.gpu import paged_step
from inference.gpu.paged_step import PagedStep
from inference.paged_kv import PagedKV
from inference.spans import Span
from tests.inference.loops import PROMPTS, answers, make_loop, request

CPU = torch.device("cpu")


@given(chunks=st.lists(st.tuples(st.integers(0, 70), st.integers(1, 50)), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_each_token_has_its_slot(chunks: list[tuple[int, int]]) -> None:
    kv = PagedKV(100, 160)
    spans = [Span(str(n), start, num) for n, (start, num) in enumerate(chunks)]
    for span in reversed(spans):
        assert kv.reserve(span.sequence_id, span.start + span.num_tokens)
    step = PagedStep.of(kv, spans, CPU)
    assert step.slots.dtype == torch.int64
    assert {one.dtype for one in (step.tables, step.starts, step.lengths)} == {torch.int32}
    assert step.is_decode == all(span.num_tokens == 1 for span in spans)
    for number, span in enumerate(spans):
        blocks = list(kv.blocks(span.sequence_id))
        table = step.tables[number].tolist()
        assert table[: len(blocks)] == blocks
        assert set(table[len(blocks) :]) <= {NULL_BLOCK}
        begin, end = step.starts[number : number + 2].tolist()
        places = range(span.start, int(step.lengths[number]))
        assert len(places) == end - begin == span.num_tokens
        expected = [blocks[p // BLOCK_TOKENS] * BLOCK_TOKENS + p % BLOCK_TOKENS for p in places]
        assert step.slots[begin:end].tolist() == expected
    # Kernels are compiled for tensors that begin at multiples of 16 bytes, and for others once more.
    assert all(t.storage_offset() % 4 == 0 for t in (step.tables, step.starts, step.lengths))


def test_a_token_without_room_has_none() -> None:
    kv = PagedKV(4, 64)
    assert kv.reserve("a", 16)
    with pytest.raises(IndexError):
        PagedStep.of(kv, [Span("a", 0, 17)], CPU)


def test_a_step_is_told_to_the_device_in_three_copies(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def sent(tensor: Tensor, device: torch.device) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    def attend(step: PagedStep, pages: Any, query: Tensor, *_: Any, **__: Any) -> Tensor:
        return query

    loop = make_loop(tiny_model, kv_layout="paged", max_num_drafting=0)
    monkeypatch.setattr(model_runner, "sent", sent)
    monkeypatch.setattr(paged_step, "sent", sent)
    attention.use_kernels(cast("ModuleType", SimpleNamespace(attend=attend)))
    try:
        answers(loop, request("one", PROMPTS[1], max_tokens=5))
    finally:
        attention.use_kernels(None)
    # Ids, positions and rows; where it starts and ends, its table; its slots.
    assert len(sizes) == 5 * 3
