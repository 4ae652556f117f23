"""The kernels for GPUs in Triton's interpreter, against plain formulas in float64."""

import random
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from inference.gpu.decode import decode
from inference.gpu.gated import gate
from inference.gpu.prefill import prefill
from inference.gpu.writing import write, write_only
from tests.inference.kernel_cases import (
    BLOCK_TOKENS,
    DEVICE,
    JUNK,
    Shape,
    Step,
    expected,
    make_step,
)

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
SHAPES = {
    "plain": Shape(),
    "one head of keys": Shape(heads=6, kv_heads=1),
    "no groups": Shape(heads=3, kv_heads=3, head_dim=8, value_dim=8),
    "odd sizes": Shape(heads=10, kv_heads=2, head_dim=24, value_dim=40),
    "large heads": Shape(heads=2, kv_heads=2, head_dim=80, value_dim=80),
    "window": Shape(options=(("window", 20),)),
    "window in a block": Shape(options=(("window", 3),)),
    "window of one": Shape(options=(("window", 1),)),
    "softcap": Shape(options=(("softcap", 2.0),)),
    "sinks": Shape(has_sinks=True),
    "all at once": Shape(options=(("window", 9), ("softcap", 5.0), ("scale", 0.3)), has_sinks=True),
    "bfloat16": Shape(dtype=BF16),
    "kept in 8 bits": Shape(dtype=BF16, kept_as=FP8),
    "kept in 8 bits, all at once": Shape(
        dtype=BF16, kept_as=FP8, options=(("window", 30), ("softcap", 5.0)), has_sinks=True
    ),
    "bfloat16, all at once": Shape(dtype=BF16, options=(("window", 30),), has_sinks=True),
}
EDGES = [1, 2, BLOCK_TOKENS - 1, BLOCK_TOKENS, BLOCK_TOKENS + 1, 64, 65, 100]


@pytest.fixture(autouse=True)
def on_the_device() -> Iterator[None]:
    with torch.device(DEVICE):
        yield


def assert_close(found: Tensor, wanted: Tensor, dtype: torch.dtype) -> None:
    tolerance = 2e-2 if dtype is BF16 else 2e-5
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


def decoded(step: Step, **options: int) -> Tensor:
    pages = (step.key_pages, step.value_pages)
    return decode(step.query, *pages, step.tables, step.lengths, **step.options, **options)


def prefilled(step: Step) -> Tensor:
    pages = (step.key_pages, step.value_pages)
    return prefill(step.query, *pages, step.tables, step.starts, step.lengths, **step.options)


# --- attention ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_one_token_of_each_sequence(name: str) -> None:
    rng = random.Random(name)
    lengths = [*rng.sample(EDGES, 3), rng.randint(1, 150)]
    step = make_step(SHAPES[name], lengths, [1] * len(lengths), seed=len(name))
    assert_close(decoded(step, num_splits=rng.choice([1, 3, 8])), expected(step), step.query.dtype)


@pytest.mark.parametrize("name", SHAPES)
def test_chunks_of_several_sequences(name: str) -> None:
    """Whole prompts, chunks behind a beginning, drafts and single tokens in one launch."""
    rng = random.Random(f"chunks {name}")
    lengths = [*rng.sample(EDGES, 3), rng.randint(20, 70), 33]
    news = [length if rng.random() < 0.4 else rng.randint(1, min(length, 24)) for length in lengths]
    step = make_step(SHAPES[name], lengths, news, seed=len(name))
    assert_close(prefilled(step), expected(step), step.query.dtype)


def test_the_number_of_splits_changes_nothing() -> None:
    step = make_step(Shape(), [130, 1, 17], [1, 1, 1], seed=3)
    wanted = expected(step)
    for num_splits in (1, 2, 5, 16):
        assert_close(decoded(step, num_splits=num_splits), wanted, torch.float32)


def test_both_kernels_agree_on_single_tokens() -> None:
    step = make_step(SHAPES["all at once"], [5, 40, 77], [1, 1, 1], seed=4)
    torch.testing.assert_close(decoded(step), prefilled(step), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("has_sinks", [False, True])
def test_rows_that_fill_up_a_batch_are_zeros(has_sinks: bool) -> None:
    """Of length 0, as in a CUDA graph of a larger batch: no NaN, and nothing read."""
    step = make_step(Shape(has_sinks=has_sinks), [7, 0, 30, 0], [1, 0, 1, 0], seed=5)
    query = torch.randn(4, 4, 16)
    query[[0, 2]] = step.query
    found = decode(
        query, step.key_pages, step.value_pages, step.tables, step.lengths, **step.options
    )
    assert_close(found[[0, 2]], expected(step), torch.float32)
    assert (found[[1, 3]] == 0).all()


def test_rows_behind_the_last_sequence_are_zeros() -> None:
    step = make_step(Shape(), [9, 20], [9, 3], seed=6)
    longer = torch.cat([step.query, torch.randn(5, 4, 16)])
    pages = (step.key_pages, step.value_pages)
    found = prefill(longer, *pages, step.tables, step.starts, step.lengths)
    assert_close(found[:12], expected(step), torch.float32)
    assert (found[12:] == 0).all()


def test_a_sequence_without_new_tokens_is_passed_over() -> None:
    step = make_step(Shape(), [20, 31, 18], [4, 0, 18], seed=7)
    assert_close(prefilled(step), expected(step), torch.float32)


def test_nothing_to_do() -> None:
    step = make_step(Shape(), [], [], seed=8)
    assert decoded(step).shape == prefilled(step).shape == (0, 4, 16)


def test_large_scores_do_not_overflow() -> None:
    shape = Shape(options=(("scale", 100.0), ("softcap", 30.0)))
    for one in (shape, Shape(options=(("scale", 100.0),))):
        step = make_step(one, [40, 3], [1, 1], seed=9)
        assert_close(decoded(step), expected(step), torch.float32)
        assert_close(prefilled(step), expected(step), torch.float32)


def test_a_block_beyond_two_to_the_31st_value_is_found() -> None:
    """The pages of a pool of several GiB, of which only one is ever touched."""
    shape = Shape(heads=2, kv_heads=1, head_dim=128, value_dim=128, dtype=BF16)
    step = make_step(shape, [10], [1], seed=10)
    block = 2**31 // (BLOCK_TOKENS * 128) + 3
    size = (block + 1, BLOCK_TOKENS, 1, 128)
    far_keys, far_values = torch.empty(size, dtype=BF16), torch.empty(size, dtype=BF16)
    far_keys[block], far_values[block] = step.key_pages[1], step.value_pages[1]
    tables = torch.tensor([[block]], dtype=torch.int32)
    for found in (
        decode(step.query, far_keys, far_values, tables, step.lengths),
        prefill(step.query, far_keys, far_values, tables, step.starts, step.lengths),
    ):
        assert_close(found, expected(step), BF16)


# --- keys and values ------------------------------------------------------------------------------


def rotated(x: Tensor, cos: Tensor, sin: Tensor, *, is_interleaved: bool) -> Tensor:
    """x: (tokens, heads, dim), cos and sin: (tokens, rotary_dim)"""
    size = cos.shape[1]
    turned, rest = x[..., :size].double(), x[..., size:].double()
    if is_interleaved:
        other = torch.stack([-turned[..., 1::2], turned[..., ::2]], -1).flatten(-2)
    else:
        other = torch.cat([-turned[..., size // 2 :], turned[..., : size // 2]], -1)
    turned = turned * cos[:, None].double() + other * sin[:, None].double()
    return torch.cat([turned, rest], -1)


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
@pytest.mark.parametrize("is_interleaved", [False, True])
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(16, 16), (24, 8), (40, 40)])
def test_what_is_rotated_is_written_to_its_slots(
    head_dim: int, rotary_dim: int, is_interleaved: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(head_dim)
    packed = torch.randn(7, (5 + 2) * head_dim + 2 * 32).to(dtype)  # strided, as of one product
    query = packed[:, : 5 * head_dim].view(7, 5, head_dim)
    key = packed[:, 5 * head_dim : 7 * head_dim].view(7, 2, head_dim)
    value = packed[:, 7 * head_dim :].view(7, 2, 32)
    cos, sin = torch.randn(7, rotary_dim).to(dtype), torch.randn(7, rotary_dim).to(dtype)
    slots = torch.tensor([40, 3, -1, 17, 0, -1, 63])
    pages = (
        torch.full((4, 16, 2, head_dim), JUNK).to(dtype),
        torch.full((4, 16, 2, 32), JUNK).to(dtype),
    )
    turned_query = rotated(query, cos, sin, is_interleaved=is_interleaved)
    turned_key = rotated(key, cos, sin, is_interleaved=is_interleaved)
    before = key.clone()
    write(query, key, value, slots, *pages, (cos, sin), is_interleaved=is_interleaved)
    assert_close(query, turned_query, dtype)
    assert torch.equal(key, before)
    keys, values = (page.flatten(0, 1) for page in pages)
    is_real = slots >= 0
    assert_close(keys[slots[is_real]], turned_key[is_real], dtype)
    assert torch.equal(values[slots[is_real]], value[is_real])
    others = [slot for slot in range(64) if slot not in slots.tolist()]
    assert (keys[others] == JUNK).all()
    assert (values[others] == JUNK).all()


def test_keys_that_carry_rope_already_are_written_as_they_are() -> None:
    key, value = torch.randn(3, 2, 16), torch.randn(3, 2, 24)
    pages = torch.zeros(2, 16, 2, 16), torch.zeros(2, 16, 2, 24)
    slots = torch.tensor([5, 31, -1])
    write_only(key, value, slots, *pages)
    assert torch.equal(pages[0].flatten(0, 1)[[5, 31]], key[:2])
    assert torch.equal(pages[1].flatten(0, 1)[[5, 31]], value[:2])
    assert pages[0].count_nonzero() == 2 * 2 * 16


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
def test_what_is_kept_in_8_bits_is_rounded_to_the_nearest_and_cut_off(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    key, value = (torch.randn(6, 2, 16) * 30).to(dtype), torch.randn(6, 2, 24).to(dtype)
    key[0, 0, :2] = torch.tensor([1e4, -1e4])
    pages = torch.zeros(2, 16, 2, 16).to(FP8), torch.zeros(2, 16, 2, 24).to(FP8)
    slots = torch.tensor([5, 31, -1, 0, 9, 8])
    write_only(key, value, slots, *pages)
    is_real = slots >= 0
    for page, new in zip(pages, (key, value), strict=True):
        expected = new[is_real].double().clamp(-448, 448)
        error = (page.flatten(0, 1)[slots[is_real]].double() - expected).abs()
        # A device would be within 2**-10; the interpreter cuts the smallest numbers off.
        assert (error <= expected.abs() * 2**-4 + 2**-9).all()


# --- gates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
@pytest.mark.parametrize(("rows", "size"), [(0, 4), (1, 1), (3, 1025), (2, 2048)])
def test_a_gate_is_its_activation_times_the_rest(rows: int, size: int, dtype: torch.dtype) -> None:
    both = (torch.randn(rows, 2 * size + 3) * 40).to(dtype)[:, : 2 * size]
    gates, up = both[:, :size].double(), both[:, size:].double()
    assert_close(gate(both), torch.nn.functional.silu(gates) * up, dtype)
    wanted = torch.nn.functional.gelu(gates, approximate="tanh") * up
    assert_close(gate(both, "gelu_tanh"), wanted, dtype)
