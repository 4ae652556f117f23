"""Our kernels draw what torch's operations draw, for any logits."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inference import SamplingParams
from inference.native import drawing
from inference.sampler import gumbel_noise, sample
from tests.inference.conftest import needs_kernels

ROWS = st.builds(
    lambda *shape: make(*shape),
    st.integers(1, 4),
    st.integers(1, 5000),
    st.sampled_from([1e-3, 1.0, 30.0, 1e5]),
    st.sampled_from([None, 0.5, 8.0]),
    st.sampled_from([0.0, 0.3, 0.999]),
    st.integers(0, 1000),
)


def make(
    num: int, width: int, size: float, rounded: float | None, masked: float, seed: int
) -> Tensor:
    """Logits (num, width); some rounded, so that many are equal, some minus infinity as grammars do."""
    torch.manual_seed(seed)
    rows = torch.randn(num, width) * size
    if rounded is not None:
        rows = (rows / (rounded * size)).round() * rounded * size
    hidden = torch.rand(num, width) < masked
    hidden[:, torch.randint(width, ())] = False
    return rows.masked_fill(hidden, float("-inf"))


@needs_kernels
@given(rows=ROWS, num=st.integers(1, drawing.MOST_CANDIDATES))
@settings(deadline=None, max_examples=60)
def test_candidates_are_the_largest(rows: Tensor, num: int) -> None:
    num = min(num, rows.shape[1])
    values, ids = drawing.candidates(rows, num)
    assert torch.equal(values.sort(dim=-1, descending=True)[0], rows.topk(num, dim=-1)[0])
    assert torch.equal(rows.gather(1, ids), values)
    assert all(len(set(own)) == num for own in ids.tolist())


@needs_kernels
@given(rows=ROWS)
@settings(deadline=None, max_examples=60)
def test_totals_are_those_of_torch(rows: Tensor) -> None:
    found, expected = drawing.log_totals(rows), rows.double().logsumexp(-1, keepdim=True)
    torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=2e-6)
    for row, total in zip(rows, found, strict=True):
        assert torch.equal(drawing.log_totals(row[None])[0], total), "the same by itself"


@needs_kernels
@given(rows=ROWS, seed=st.integers(-(2**63), 2**63 - 1), position=st.integers(0, 2**33))
@settings(deadline=None, max_examples=100)
def test_a_draw_is_the_likeliest_of_the_largest_sums(
    rows: Tensor, seed: int, position: int
) -> None:
    num, width = rows.shape
    seeds, positions = torch.tensor([seed] * num), torch.arange(num) + position
    sums = rows + gumbel_noise(seeds, positions, torch.arange(width).expand(num, width))
    best = rows.masked_fill(sums < sums.max(-1, keepdim=True)[0], float("-inf"))
    assert torch.equal(drawing.draw_among_all(rows, seeds, positions), best.argmax(-1))


@needs_kernels
@given(rows=ROWS, data=st.data())
@settings(deadline=None, max_examples=60)
def test_without_kernels_the_same_is_drawn(rows: Tensor, data: st.DataObject) -> None:
    filters = st.sampled_from([{}, {"top_k": 20}, {"top_p": 0.9}, {"min_p": 0.05}, {"top_p": 0.99}])
    temperatures = st.sampled_from([0.0, 0.7, 1.0, 2.0])
    params = [
        SamplingParams(9, seed, data.draw(temperatures), **data.draw(filters))
        for seed in range(len(rows))
    ]
    positions = range(5, 5 + len(rows))
    ours = sample(rows, params, positions)
    with patch.object(drawing, "can_draw", lambda rows: False):
        assert sample(rows, params, positions) == ours


@needs_kernels
def test_what_is_no_number_disturbs_nobody() -> None:
    rows = make(3, 3000, 1.0, None, 0.0, 0)
    seeds, positions = torch.arange(3), torch.arange(3)
    drawn, totals = drawing.draw_among_all(rows, seeds, positions), drawing.log_totals(rows)
    rows[1, 7::300] = float("nan")
    again, of_broken = drawing.draw_among_all(rows, seeds, positions), drawing.log_totals(rows)
    assert again[[0, 2]].tolist() == drawn[[0, 2]].tolist()
    assert torch.equal(of_broken[[0, 2]], totals[[0, 2]])
    assert of_broken[1].isnan()
    values, ids = drawing.candidates(rows, 300)
    assert ((ids >= 0) & (ids < 3000)).all()
    assert torch.equal(values[[0, 2]].sort()[0], rows[[0, 2]].topk(300)[0].sort()[0])
    rows[1] = float("nan")
    assert 0 <= drawing.draw_among_all(rows, seeds, positions)[1] < 3000
    for value in (float("-inf"), float("inf")):
        assert drawing.log_totals(torch.full((1, 20), value)) == value


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_are_torchs(dtype: torch.dtype) -> None:
    assert not drawing.can_draw(torch.zeros(2, 9, dtype=dtype))
    assert not drawing.can_draw(torch.zeros(0, 9))
