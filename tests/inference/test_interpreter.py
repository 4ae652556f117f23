"""What is taken out of Triton's interpreter changes nothing of what kernels compute."""

import os

import pytest
import torch

if os.environ["TRITON_INTERPRET"] != "1":
    pytest.skip("kernels are compiled", allow_module_level=True)

import triton
import triton.language as tl
from triton.runtime import interpreter


@triton.jit
def _doubled(x):  # type: ignore[no-untyped-def]
    return tl.sum(x + x, axis=0)


@triton.jit
def _sums(given, sums, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
    row = tl.program_id(0)
    x = tl.load(given + row * WIDTH + tl.arange(0, WIDTH))
    tl.store(sums + row, _doubled(x) + _doubled(x))


@triton.jit
def _copied(given, copy, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
    at = tl.arange(0, WIDTH)
    x = tl.load(given + at)
    tl.static_assert(x.shape[0] == WIDTH and x.numel == WIDTH)
    tl.store(copy + at, x.to(copy.dtype.element_ty))


def sums(given: torch.Tensor) -> list[float]:
    out = torch.empty(len(given), dtype=given.dtype)
    _sums[(len(given),)](given, out, WIDTH=given.shape[1])
    return out.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64])
def test_sums_are_right(dtype: torch.dtype) -> None:
    given = torch.arange(12).reshape(3, 4).to(dtype)
    assert sums(given) == (4 * given.sum(1)).tolist()


def test_integers_go_round_as_on_a_device() -> None:
    assert sums(torch.tensor([[2**30, 0]], dtype=torch.int32)) == [0]


NUMBERS = [0.0, -0.0, 1.0, -2.5, 3.14159265, 1e-30, 3e38, torch.inf, -torch.inf, torch.nan]


def test_bfloat16_is_the_upper_half_of_float32() -> None:
    """Cut off, as the interpreter has it, where a device rounds."""
    given = torch.tensor(NUMBERS + [0.1] * 6)
    copy = torch.empty(16, dtype=torch.bfloat16)
    _copied[(1,)](given, copy, WIDTH=16)
    assert torch.equal(copy.view(torch.int16), (given.view(torch.int32) >> 16).to(torch.int16))
    back = torch.empty(16)
    _copied[(1,)](copy, back, WIDTH=16)
    assert torch.equal(back.view(torch.int32), given.view(torch.int32) & -(2**16))


def test_other_types_are_converted_as_ever() -> None:
    given = torch.tensor([0.5, 1.0, -448.0, 3.0])
    copy = torch.empty(4, dtype=torch.float8_e4m3fn)
    _copied[(1,)](given, copy, WIDTH=4)
    assert copy.float().tolist() == given.tolist()


def test_the_language_is_changed_for_a_launch_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    arange, load, is_true = tl.arange, tl.load, tl.tensor.__dict__.get("__bool__")
    changed = []
    patch = interpreter._patch_builtin
    monkeypatch.setattr(
        interpreter,
        "_patch_builtin",
        lambda package, *more: (changed.append(package), patch(package, *more)),
    )
    for _ in range(2):
        changed.clear()
        assert sums(torch.ones(5, 2)) == [8.0] * 5
        # Though five programs call functions twice: for the launch, and for a function of Triton's own.
        assert changed.count(tl) <= 2
        assert changed.count(tl.core) <= 1
        assert (tl.arange, tl.load) == (arange, load)
        assert tl.tensor.__dict__.get("__bool__") is is_true


def test_a_kernel_that_fails_leaves_the_language_as_it_was() -> None:
    arange = tl.arange
    with pytest.raises(interpreter.InterpreterError):
        sums(torch.ones(2, 3))  # no power of two
    assert tl.arange is arange
    assert sums(torch.ones(2, 4)) == [16.0, 16.0]


def test_what_is_left_out_would_be_for_nothing() -> None:
    options = interpreter.interpreter_builder.options
    assert not options.debug, "else overflows would be told"
    assert not options.sanitize_overflow
