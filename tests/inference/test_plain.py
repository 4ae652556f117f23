"""Products of few rows in bfloat16: as exact as torch's, of any shape."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from inference.fusing import fuse
from inference.native import plain
from inference.native.kernels import kernels

pytestmark = pytest.mark.skipif(
    not plain.is_quicker(), reason="there is no AVX512-BF16, or AMX beside it"
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


@given(
    num_rows=st.integers(1, 40),
    num_inputs=st.integers(1, 1200).map(lambda half: 2 * half),
    num_outputs=st.integers(1, 100),
    has_bias=st.booleans(),
    num_threads=st.sampled_from([1, 2, 3]),
)
@settings(max_examples=150, deadline=None)
def test_products_are_right(
    num_rows: int, num_inputs: int, num_outputs: int, has_bias: bool, num_threads: int
) -> None:
    assert kernels() is not None
    x, weight = random(num_rows, num_inputs), random(num_outputs, num_inputs, seed=1)
    bias = random(num_outputs, seed=2) if has_bias else None
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        found = plain.linear(x, weight, bias)
    finally:
        torch.set_num_threads(before)
    exact = x.double() @ weight.double().T + (0 if bias is None else bias.double())
    largest = x.double().abs() @ weight.double().abs().T + 1
    assert found.dtype == torch.bfloat16
    assert bool(((found - exact).abs() <= exact.abs() / 250 + largest * 1e-6).all())


def test_a_row_is_the_same_beside_any_others() -> None:
    x, weight = random(40, 4100), random(150, 4100, seed=1)  # more than a span, more than a block
    together = plain.linear(x, weight, None)
    for num_rows in (1, 2, 7, 8, 9, 17):
        assert torch.equal(plain.linear(x[:num_rows], weight, None), together[:num_rows])


def test_what_is_no_number_stays_with_its_row() -> None:
    x, weight = random(9, 64), random(50, 64, seed=1)
    expected = plain.linear(x, weight, None)
    x[4, 7] = float("nan")
    found = plain.linear(x, weight, None)
    assert bool(found[4].isnan().all())
    others = [row for row in range(9) if row != 4]
    assert torch.equal(found[others], expected[others])


@torch.inference_mode()
def test_layers_take_it_for_few_rows_of_bfloat16_and_else_are_as_before() -> None:
    layer = nn.ModuleDict({"one": nn.Linear(64, 50), "odd": nn.Linear(63, 50)}).bfloat16()
    exact = nn.Linear(64, 50)
    assert fuse(layer) == 1
    assert fuse(exact) == 0
    one = layer["one"]
    for num_rows in (1, 5, 20, plain.MOST_ROWS + 1):
        x = random(1, num_rows, 64)
        plainly = nn.functional.linear(x, one.weight, one.bias)
        assert one(x).shape == plainly.shape
        assert float((one(x) - plainly).norm() / plainly.norm()) < 5e-3
    assert torch.equal(one(random(0, 64)), one.weight.new_empty(0, 50))
    with pytest.raises(RuntimeError):
        one(random(20, 62))
    with pytest.raises(RuntimeError):
        one(torch.randn(20, 64))
    strided = random(20, 128)[:, ::2]
    assert torch.equal(one(strided), one(strided.contiguous()))
