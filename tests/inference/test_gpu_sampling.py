"""What is drawn on the device is what the processor's sampler draws, token for token."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from inference import SamplingParams
from inference import sampler as on_host
from inference.gpu.sampling import BROKEN, Knobs, Tier, draw, sample, tier_of

VOCAB = 1000  # more than candidates
params = st.builds(
    SamplingParams,
    max_tokens=st.just(1),
    seed=st.integers(0, 2**63 - 1),
    temperature=st.sampled_from((0.0, 1e-9, 0.3, 1.0, 2.5)),
    top_k=st.sampled_from((0, 0, 1, 40, on_host.NUM_CANDIDATES, 400, VOCAB)),
    top_p=st.sampled_from((1.0, 0.95, 0.5, 1e-6)),
    min_p=st.sampled_from((0.0, 0.02, 1.0)),
)
rows = st.lists(st.tuples(params, st.integers(0, 2**20)), min_size=1, max_size=70)


def logits_of(num_rows: int, seed: int, step: float = 0.0) -> torch.Tensor:
    """`step` rounds them: bfloat16's have many equals."""
    logits = torch.randn(num_rows, VOCAB, generator=torch.Generator().manual_seed(seed)) * 2
    return (logits / step).round() * step if step else logits


@given(rows=rows, seed=st.integers(0, 99), step=st.sampled_from((0.0, 0.0, 0.5, 100.0)))
@settings(max_examples=25, deadline=None)
def test_the_device_draws_what_the_host_draws(
    rows: list[tuple[SamplingParams, int]], seed: int, step: float
) -> None:
    own, positions = [p for p, _ in rows], [position for _, position in rows]
    logits = logits_of(len(rows), seed, step)
    assert sample(logits, own, positions) == on_host.sample(logits, own, positions)


def test_many_draws_of_each_tier_are_the_same() -> None:
    num = 1500
    for tier, filters in {
        Tier.OPEN: {},
        Tier.NARROW: {"top_k": 20, "top_p": 0.95},
        Tier.WIDE: {"top_p": 0.9},
    }.items():
        own = [SamplingParams(1, seed=i, temperature=0.8, **filters) for i in range(num)]
        assert tier_of(own) == tier
        logits = logits_of(1, 7).expand(num, -1)
        drawn = sample(logits, own, range(num))
        assert drawn == on_host.sample(logits, own, range(num))
        assert len(set(drawn)) > 10


@given(order=st.permutations(range(6)), num_padding=st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_a_seed_draws_the_same_in_any_batch_and_tier(order: list[int], num_padding: int) -> None:
    own = [
        SamplingParams(1, seed=50 + i, temperature=t, top_p=p, top_k=k)
        for i, (t, p, k) in enumerate(
            [(1, 1, 0), (0.7, 0.9, 0), (1.3, 1, 40), (1, 0.5, 3), (0, 1, 0), (2, 0.99, 0)]
        )
    ]
    logits, positions = logits_of(6, 3), [17, 3, 900, 0, 5, 2**20]
    alone = [sample(logits[i : i + 1], [own[i]], [positions[i]])[0] for i in range(6)]
    padding = [SamplingParams(1, temperature=0)] * num_padding
    batch = torch.cat([logits[order], torch.zeros(num_padding, VOCAB)])
    where = [positions[i] for i in order] + [0] * num_padding
    mixed = sample(batch, [*(own[i] for i in order), *padding], where)
    assert mixed[:6] == [alone[i] for i in order]


def test_rows_without_numbers_are_told_and_leave_others_alone() -> None:
    own = [SamplingParams(1, seed=i, temperature=1, top_p=0.9) for i in range(4)]
    logits = logits_of(4, 1)
    expected = sample(logits, own, range(4))
    logits[1, 5] = torch.nan
    logits[3] = torch.nan
    found = draw(logits, torch.arange(4), Knobs.of(own), tier_of(own))
    assert found.tolist() == [expected[0], BROKEN, expected[2], BROKEN]
    assert sample(logits, own, range(4))[::2] == expected[::2]


@pytest.mark.parametrize("tier", [Tier.GREEDY, Tier.OPEN, Tier.NARROW, Tier.WIDE, Tier(7)])
def test_nothing_is_looked_at_by_the_host(tier: Tier) -> None:
    """Nor does anything come from it: tensors on a device that is not there would refuse both."""
    cuda = torch.device("cuda")
    with FakeTensorMode():
        logits = torch.empty(130, 5000, device=cuda, dtype=torch.bfloat16)
        positions = torch.empty(130, dtype=torch.int64, device=cuda)
        drawn = draw(logits, positions, Knobs.empty(130, cuda), tier)
        assert (drawn.device.type, drawn.dtype, drawn.shape) == ("cuda", torch.int64, (130,))
        with pytest.raises(DataDependentOutputException):
            drawn.tolist()
