"""Products of whole numbers by the kernels for GPUs, against what the numbers stand for in float64."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm, silu

from inference.gpu import whole
from inference.gpu.few_rows import Norm, Tile
from inference.whole_linear import WholeLinear, WholeWeight, dequantize
from tests.inference.kernel_cases import DEVICE

BF16 = torch.bfloat16
LIMITS = {torch.float32: 1e-5, BF16: 1e-2}


@pytest.fixture(autouse=True)
def on_the_device() -> Iterator[None]:
    torch.manual_seed(5)
    with torch.device(DEVICE):
        yield


def weight_of(num_in: int, num_out: int, bits: int) -> tuple[WholeWeight, Tensor]:
    """Random ones, and what they stand for, (outputs, inputs) in float64."""
    layer = WholeLinear([nn.Linear(num_in, num_out)], bits=bits)
    return layer.weight, dequantize(layer.weight, slice(None), torch.float64)


def error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("num_rows", [1, 2, 17, whole.MOST_ROWS])
def test_a_product_with_what_is_around_it(num_rows: int, bits: int, dtype: torch.dtype) -> None:
    x = torch.randn(num_rows, 75).to(dtype)[:, :70]
    weight, values = weight_of(70, 21, bits)
    bias, residual = torch.randn(21).to(dtype), torch.randn(num_rows, 25).to(dtype)[:, :21]
    found = whole.linear(x, weight, bias=bias, residual=residual)
    assert found.dtype == dtype
    expected = x.double() @ values.T + bias.double() + residual.double()
    assert error(found, expected) < LIMITS[dtype]


@pytest.mark.parametrize("num_in", [64, 70])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("is_gated", [False, True])
def test_one_row_has_a_norm_before_and_a_gate_behind(
    is_gated: bool, bits: int, num_in: int
) -> None:
    x, norm = torch.randn(1, num_in).to(BF16), Norm(torch.randn(num_in).to(BF16), 1e-2)
    weight, values = weight_of(num_in, 42, bits)
    bias = torch.randn(42).to(BF16)
    found = whole.linear(
        x, weight, bias=bias, norm=norm, is_gated=is_gated, out_dtype=torch.float32
    )
    rows = rms_norm(x.double(), (num_in,), norm.weight.double(), norm.epsilon)
    expected = rows @ values.T + bias.double()
    if is_gated:
        expected = silu(expected[:, :21]) * expected[:, 21:]
    assert found.dtype == torch.float32
    assert error(found, expected) < 1e-5, "nothing is rounded on the way"


@pytest.mark.parametrize("num_rows", [1, 3])
@pytest.mark.parametrize(("outputs", "inputs"), [(16, 128), (32, 64), (16, 1024)])
def test_tiles_change_nothing(outputs: int, inputs: int, num_rows: int) -> None:
    x = torch.randn(num_rows, 256)
    weight, values = weight_of(256, 32, 4)
    found = whole.linear(x, weight, tile=Tile(outputs, inputs, 4, 2))
    assert error(found, x.double() @ values.T) < 1e-5


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_are_spelt_out_as_by_torch(bits: int, dtype: torch.dtype) -> None:
    weight, _ = weight_of(1100, 9, bits)
    for outputs in (slice(None), slice(3, 7), slice(4, 4)):
        found, expected = (one(weight, outputs, dtype) for one in (whole.dequantize, dequantize))
        assert found.dtype == dtype
        # The interpreter cuts bfloat16 off where a device rounds.
        assert found.shape == expected.shape
        assert torch.allclose(found, expected, rtol=2**-7 if dtype == BF16 else 0, atol=0)


def test_no_rows_are_no_rows() -> None:
    weight, _ = weight_of(64, 8, 4)
    assert whole.linear(torch.randn(0, 64), weight).shape == (0, 8)
