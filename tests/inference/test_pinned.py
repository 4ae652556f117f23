"""What goes to a GPU goes from pinned memory, in one piece and without a wait."""

import pytest
import torch
from torch import Tensor

from inference.gpu.step_buffers import StepBuffers
from inference.messages import GenerateRequest, SamplingParams
from inference.paged_kv import PagedKV
from inference.pinned import sent
from inference.sequence import Sequence

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def pinning(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """What was pinned."""
    found: list[Tensor] = []

    def pin(self: Tensor) -> Tensor:
        found.append(self)
        return self

    monkeypatch.setattr(Tensor, "pin_memory", pin)
    return found


def test_what_is_staged_lies_in_one_piece(pinning: list[Tensor]) -> None:
    kv = PagedKV(20, 64)
    buffers = StepBuffers(kv, 4, CPU)
    buffers.device = CUDA
    sequences = []
    for n in range(3):
        params = SamplingParams(max_tokens=9, temperature=0.5, top_p=0.25 * n, top_k=n, seed=n)
        sequences.append(Sequence(GenerateRequest(f"r{n}", "", (5, 6, 7), params)))
        assert kv.reserve(f"r{n}", 40)
    staged = buffers.stage(sequences, 4)
    assert len(pinning) == 3 + len(staged.knobs.tensors)
    assert all(one.is_contiguous() for one in pinning)
    assert staged.knobs.top_p.tolist() == [0.0, 0.25, 0.5]
    assert staged.knobs.seed.tolist() == [0, 1, 2]


def test_on_a_processor_nothing_is_copied(pinning: list[Tensor]) -> None:
    one = torch.arange(6).view(2, 3).T
    assert sent(one, CPU) is one
    assert not pinning
