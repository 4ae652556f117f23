"""Our kernels compute what torch does, for any shape, and a row the same beside any others."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import silu

from inference import int8
from inference.attention import causal_mask
from inference.int8_linear import NarrowOneDnnLinear, OneDnnLinear
from inference.low_rank import LowRankSum, Part
from inference.native import attention, build, low_rank, rows
from inference.native.kernels import kernels
from inference.native.linear import Int4Linear, NativeLinear
from inference.native.low_rank import NativeLowRankSum, make_sum
from tests.inference.conftest import needs_kernels

DTYPES = st.sampled_from([torch.float32, torch.bfloat16])


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.float() - expected.float()).norm() / expected.float().norm())


def close(dtype: torch.dtype) -> float:
    return 1e-5 if dtype == torch.float32 else 5e-3


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def num_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


# --- products ---------------------------------------------------------------------------------


def whole_product(linear: nn.Linear, x: Tensor) -> Tensor:
    """What 8 bits give, by plain arithmetic on whole numbers in float64. x: (rows, inputs)."""
    weight, x = linear.weight.detach().double(), x.double()
    steps, scales = weight.abs().amax(1) / 127, x.abs().amax(1, keepdim=True) / 127
    product = ((x / scales).round() @ (weight / steps[:, None]).round().T) * scales * steps
    return product if linear.bias is None else product + linear.bias.double()


@needs_kernels
@given(
    num_rows=st.integers(1, 70),
    num_inputs=st.integers(1, 200),
    num_outputs=st.integers(1, 100),
    has_bias=st.booleans(),
    seed=st.integers(0, 999),
)
@settings(deadline=None, max_examples=60)
def test_a_product_is_that_of_the_whole_numbers(
    num_rows: int, num_inputs: int, num_outputs: int, has_bias: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    linear = nn.Linear(num_inputs, num_outputs, bias=has_bias)
    x = random(num_rows, num_inputs, seed=seed)
    with torch.inference_mode():
        found = NativeLinear([linear])(x)
        # A value that lies between two whole numbers may go to either: one step of one weight.
        assert error(found, whole_product(linear, x)) < 2e-3 + 0.02 / num_inputs


@needs_kernels
@pytest.mark.parametrize("uses_amx", [0, 1], ids=["by VNNI", "by AMX if there is one"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [NativeLinear, Int4Linear])
def test_a_row_is_the_same_in_any_batch(
    uses_amx: int, dtype: torch.dtype, num_threads: int, kind: type[NativeLinear]
) -> None:
    library = kernels()
    assert library is not None
    layer = kind([nn.Linear(130, 50), nn.Linear(130, 37)])
    x = random(65, 130, dtype=dtype)
    x[3] *= 1000
    with torch.inference_mode():
        alone = torch.cat([layer(x[i : i + 1]) for i in range(len(x))])
        library.begin(uses_amx)
        try:
            for num_rows in range(1, 66):
                assert torch.equal(layer(x[:num_rows]), alone[:num_rows]), num_rows
        finally:
            library.begin(1)


@needs_kernels
@pytest.mark.parametrize("num_rows", [1, 2, 3, 4, 9, 40])
@pytest.mark.parametrize("kind", [NativeLinear, Int4Linear])
def test_the_largest_products_fit(kind: type[NativeLinear], num_rows: int) -> None:
    """All weights and inputs at their ends, of either sign: sums in 16 bits are full then."""
    linear = nn.Linear(320, 20, bias=False)
    with torch.inference_mode():
        linear.weight.copy_(torch.where(torch.arange(20)[:, None] % 2 == 0, 1.0, -1.0))
        for sign in (1.0, -1.0):
            x = torch.full((num_rows, 320), sign)
            assert error(kind([linear])(x), linear(x)) < 0.01


def halved(linear: nn.Linear) -> nn.Linear:
    """The layer whose weights are what 4 bits, factors and scales make of them."""
    layer = Int4Linear([linear])
    with torch.no_grad():
        whole = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        whole.load_state_dict(linear.state_dict())
        # A row of the identity is 127 in 8 bits, so that the layer spells its weights out.
        spelt = layer(torch.eye(linear.in_features))
        whole.weight.copy_((spelt if linear.bias is None else spelt - linear.bias).T)
    return whole


@needs_kernels
@given(
    num_rows=st.integers(1, 70),
    num_inputs=st.integers(1, 200),
    num_outputs=st.integers(1, 100),
    seed=st.integers(0, 999),
)
@settings(deadline=None, max_examples=40)
def test_a_product_in_4_bits_is_that_of_its_weights(
    num_rows: int, num_inputs: int, num_outputs: int, seed: int
) -> None:
    torch.manual_seed(seed)
    linear = nn.Linear(num_inputs, num_outputs)
    x = random(num_rows, num_inputs, seed=seed)
    with torch.inference_mode():
        spelt = halved(linear)
        steps = linear.weight.abs().amax(1, keepdim=True) / 120
        off = (spelt.weight - linear.weight) / steps
        # The largest is exact; of the others any may be cut off by 15, on the shorter side.
        most = 15**2 * (num_inputs - 1) / num_inputs
        assert (off.square().mean(1) <= most + 1e-3).all()
        in_steps = spelt.weight / steps
        assert torch.allclose(in_steps, in_steps.round(), atol=0.02)
        found, scales = Int4Linear([linear])(x), x.abs().amax(1, keepdim=True) / 127
        exact = ((x / scales).round() * scales).double() @ spelt.weight.double().T
        assert error(found, exact + linear.bias.double()) < 2e-3 + 0.02 / num_inputs


@needs_kernels
def test_4_bits_are_about_as_good_as_they_can_be() -> None:
    """Rounding Gaussian weights to 4 bits with a free scale for every 32 loses 8.6 % (Q4_0)."""
    linear = nn.Linear(1024, 256, bias=False)
    nn.init.normal_(linear.weight)
    x = random(20, 1024)
    with torch.inference_mode():
        assert error(Int4Linear([linear])(x), linear(x)) < 0.095
    assert Int4Linear([linear]).num_bytes * 8 / linear.weight.numel() < 4.4


@needs_kernels
def test_rows_may_lie_apart_and_logits_may_be_wider() -> None:
    linear = nn.Linear(40, 20)
    x = random(6, 100, dtype=torch.bfloat16)
    with torch.inference_mode():
        layer = NativeLinear([linear], torch.float32)
        apart, turned = x[:, 30:70], x[:, 30:70].T.contiguous().T
        assert layer(apart).dtype == torch.float32
        assert torch.equal(layer(apart), layer(apart.contiguous()))
        assert torch.equal(layer(turned), layer(apart))
        assert layer(x[:0, :40]).shape == (0, 20)
        assert layer(apart.double()).dtype == torch.float64


@needs_kernels
def test_what_is_no_number_stays_in_its_row() -> None:
    layer = NativeLinear([nn.Linear(96, 50)])
    x = random(4, 96)
    x[1, 5], x[2, 7] = float("nan"), float("inf")
    with torch.inference_mode():
        found = layer(x)
        assert found[1].isnan().all()
        assert found[2].isnan().all()
        assert torch.equal(found[[0, 3]], layer(x[[0, 3]]))
        assert layer(torch.zeros(1, 96)).isfinite().all()


def test_without_kernels_onednn_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it can be trusted to: its products of 8 bits saturate where there is no VNNI."""
    monkeypatch.setattr("inference.native.linear.kernels", lambda: None)
    assert not int8.is_sound(NativeLinear, 0.02)
    int8.sound_kind.cache_clear()
    try:
        is_exact = int8.is_sound(OneDnnLinear, 0.02)
        assert int8.sound_kind() is (OneDnnLinear if is_exact else NarrowOneDnnLinear)
        assert int8.is_sound(NarrowOneDnnLinear, 0.04)
    finally:
        int8.sound_kind.cache_clear()


# --- attention --------------------------------------------------------------------------------


def attended(query: Tensor, keys: Tensor, values: Tensor, window: int | None) -> Tensor:
    """(heads, new, dim), (kv_heads, all, dim) -> (new, heads, value_dim), written out in float32."""
    group = len(query) // len(keys)
    keys, values = (t.repeat_interleave(group, 0).float() for t in (keys, values))
    scores = query.float() @ keys.transpose(1, 2) * query.shape[-1] ** -0.5
    mask = causal_mask(query.shape[1], keys.shape[1], window, query.device)
    return (scores.masked_fill(~mask, float("-inf")).softmax(-1) @ values).transpose(0, 1)


@needs_kernels
@pytest.mark.parametrize("uses_amx", [0, 1], ids=["without AMX", "with AMX if there is one"])
@given(
    spans=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 150)), min_size=1, max_size=4),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 9),
    dims=st.tuples(st.sampled_from([16, 48, 64, 128]), st.sampled_from([16, 64, 80, 256])),
    window=st.none() | st.integers(1, 200),
    dtype=DTYPES,
    threads=st.sampled_from([1, 3]),
)
@settings(deadline=None, max_examples=60)
def test_attention_is_that_of_torch_for_all_spans_at_once(
    spans: list[tuple[int, int]],
    kv_heads: int,
    group: int,
    dims: tuple[int, int],
    window: int | None,
    dtype: torch.dtype,
    threads: int,
    uses_amx: int,
) -> None:
    library = kernels()
    assert library is not None
    num_new = sum(new for _, new in spans)
    query = random(num_new, kv_heads * group, dims[0], dtype=dtype).transpose(0, 1)
    key = random(num_new, kv_heads, dims[0], seed=1, dtype=dtype).transpose(0, 1)
    value = random(num_new, kv_heads, dims[1], seed=2, dtype=dtype).transpose(0, 1)
    table, expected, begin = [], [], 0
    for number, (start, new) in enumerate(spans):
        keys = random(kv_heads, start + new + number, dims[0], seed=3, dtype=dtype)
        values = random(kv_heads, start + new + number, dims[1], seed=4, dtype=dtype)
        table.append((keys, values, start, new, begin, number == 1))
        packed = slice(begin, begin + new)
        before = keys[:, :start].clone()
        all_keys = torch.cat([before, key[:, packed]], dim=1)
        all_values = torch.cat([values[:, :start], value[:, packed]], dim=1)
        expected.append(attended(query[:, packed], all_keys, all_values, window))
        begin += new
    assert attention.most_tokens(query, key, value) >= 8
    out = query.new_empty(num_new, kv_heads * group, dims[1])
    threads_before = torch.get_num_threads()
    library.begin(uses_amx)
    torch.set_num_threads(threads)
    attention.attend(query, key, value, table, out, scaling=None, sliding_window=window)
    torch.set_num_threads(threads_before)
    library.begin(1)
    assert error(out, torch.cat(expected)) < close(dtype)
    for keys, values, start, new, packed_at, _ in table:
        packed = slice(packed_at, packed_at + new)
        assert torch.equal(keys[:, start : start + new], key[:, packed])
        assert torch.equal(values[:, start : start + new], value[:, packed])


@needs_kernels
def test_a_sequence_attends_the_same_beside_any_neighbours(num_threads: int) -> None:
    query, key, value = (random(5, heads, 64, seed=heads).transpose(0, 1) for heads in (8, 2, 2))

    def run(count: int) -> Tensor:
        table = [
            (
                random(2, 200 + n, 64, seed=n),
                random(2, 200 + n, 64, seed=n + 9),
                150 + n,
                1,
                n,
                False,
            )
            for n in range(count)
        ]
        out = torch.empty(count, 8, 64)
        packed = (t[:, :count] for t in (query, key, value))
        attention.attend(*packed, table, out, scaling=0.1, sliding_window=None)
        return out

    together = run(5)
    for count in range(1, 5):
        assert torch.equal(run(count), together[:count])


@needs_kernels
@pytest.mark.parametrize("each_alone", [True, False])
@given(data=st.data(), num_new=st.integers(2, 40), start=st.integers(0, 300), dtype=DTYPES)
@settings(deadline=None, max_examples=20)
def test_into_what_pieces_tokens_fall_does_not_matter(
    each_alone: bool, data: st.DataObject, num_new: int, start: int, dtype: torch.dtype
) -> None:
    """Of a prompt, or of an answer: a draft of it, or what is read again after a crash."""
    query, key, value = (
        random(num_new, heads, 64, seed=heads, dtype=dtype).transpose(0, 1) for heads in (8, 2, 2)
    )
    keys, values = (random(2, start + num_new, 64, seed=n, dtype=dtype) for n in (3, 4))

    def run(begin: int, end: int) -> Tensor:
        new = tuple(t[:, begin:end] for t in (query, key, value))
        out = new[0].new_empty(end - begin, 8, 64)
        table = [(keys, values, start + begin, end - begin, 0, each_alone)]
        attention.attend(*new, table, out, scaling=None, sliding_window=None)
        return out

    whole = run(0, num_new)
    cuts = sorted({0, num_new, *data.draw(st.lists(st.integers(1, num_new), max_size=5))})
    assert torch.equal(torch.cat([run(*pair) for pair in pairwise(cuts)]), whole)
    if each_alone:
        assert torch.equal(torch.cat([run(n, n + 1) for n in range(num_new)]), whole)


def test_attention_says_what_it_cannot() -> None:
    def can(dim: int, value_dim: int, dtype: torch.dtype) -> bool:
        query, value = random(1, 1, dim, dtype=dtype), random(1, 1, value_dim, dtype=dtype)
        return attention.most_tokens(query, query, value) > 0

    assert can(64, 64, torch.float32) == (kernels() is not None)
    assert not can(40, 64, torch.float32)
    assert not can(64, 1024, torch.float32)
    assert not can(64, 64, torch.float16)


# --- rows -------------------------------------------------------------------------------------


@needs_kernels
@given(num_rows=st.integers(1, 40), width=st.integers(1, 300), dtype=DTYPES)
@settings(deadline=None, max_examples=40)
def test_small_operations_are_those_of_torch(num_rows: int, width: int, dtype: torch.dtype) -> None:
    x, weight = random(num_rows, width, dtype=dtype) * 10, random(width, seed=1, dtype=dtype)
    wide = x.float()
    normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()
    assert error(rows.rms_norm(x, weight, 1e-6), normal) < close(dtype)
    both = random(num_rows, 2 * width, seed=2, dtype=dtype) * 30
    gates, ups = both.float().split(width, dim=-1)
    assert error(rows.silu_mul(both), silu(gates) * ups) < close(dtype)


@needs_kernels
@given(
    num_tokens=st.integers(1, 20),
    heads=st.integers(1, 5),
    half=st.integers(1, 40),
    dtype=DTYPES,
)
@settings(deadline=None, max_examples=40)
def test_rope_turns_the_halves(num_tokens: int, heads: int, half: int, dtype: torch.dtype) -> None:
    x = random(1, num_tokens, heads, 2 * half, dtype=dtype).transpose(1, 2)
    cosines, sines = (random(1, num_tokens, 2 * half, seed=n, dtype=dtype) for n in (1, 2))
    low, high = x.float().split(half, dim=-1)
    turned = torch.cat([-high, low], dim=-1) * sines[:, None].float()
    found = rows.rotate(x, cosines, sines)
    assert found.shape == x.shape
    assert error(found, x.float() * cosines[:, None].float() + turned) < close(dtype)


@given(num_rows=st.integers(1, 5), width=st.integers(1, 100), seed=st.integers(0, 99))
def test_the_largest_is_the_first_of_equals(num_rows: int, width: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-3, 3, (num_rows, width), generator=generator).float()
    values, places = rows.largest(x)
    assert torch.equal(values, x.amax(-1))
    for row, place in zip(x.tolist(), places.tolist(), strict=True):
        assert place == row.index(max(row))


def test_the_largest_of_what_is_no_number_is_none() -> None:
    x = random(3, 50)
    x[1, 20] = float("nan")
    x[2] = float("-inf")
    values, _ = rows.largest(x)
    assert values.isnan().tolist() == [False, True, False]
    assert values[2] == float("-inf")


# --- building ---------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "vitrine"


@pytest.mark.skipif(not shutil.which("cc"), reason="this machine has no compiler")
def test_what_was_built_is_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    run = subprocess.run

    def counted(words: list[str], **options: object) -> object:
        calls.append(words)
        return run(words, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", counted)
    first = build.built_library()
    assert first == build.built_library()
    if kernels() is not None:
        assert first is not None
        assert len(calls) == 1
        assert [path.name for path in cache.iterdir()] == [first.name]


def test_without_a_compiler_there_are_no_kernels(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(cache))
    assert build.built_library() is None


def test_a_compiler_that_refuses_costs_the_kernels_only(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'these kernels are written for AVX-512' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    caplog.set_level("INFO")
    assert build.built_library() is None
    assert "written for AVX-512" in caplog.text
    assert not list(cache.iterdir())


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_write_to_is_not_trusted(cache: Path, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    assert build.built_library() is None
    assert stat.S_IMODE(cache.stat().st_mode) == mode, "it is not ours to change"


def test_nothing_is_run_out_of_a_folder_that_depends_on_where_we_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A user without a home has a cache in "~" of the working directory, whoever that belongs to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert build.built_library() is None
    assert not list(tmp_path.iterdir())


# --- adapters ---------------------------------------------------------------------------------


def low_rank_parts(seed: int, num_inputs: int, ranks: list[int], dtype: torch.dtype) -> list[Part]:
    """One behind the other, with some outputs between them that none adds to."""
    parts, end = [], 0
    for number, rank in enumerate(ranks):
        start, end = end + 3 * number, end + 3 * number + 11 * rank + number
        a = random(rank, num_inputs, seed=seed + number, dtype=dtype)
        b = random(end - start, rank, seed=seed - number, dtype=dtype)
        parts.append(Part(slice(start, end), a, b))
    return parts


@needs_kernels
@given(
    seed=st.integers(9, 2**31),
    num_rows=st.integers(1, 11),
    num_inputs=st.integers(1, 90),
    ranks=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    dtypes=st.tuples(DTYPES, DTYPES, DTYPES),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it stays the same
def test_an_adapter_adds_what_it_should(
    seed: int,
    num_rows: int,
    num_inputs: int,
    ranks: list[int],
    dtypes: tuple[torch.dtype, torch.dtype, torch.dtype],
    num_threads: int,
) -> None:
    """Rows and sums that lie in the middle of others, each of a dtype of its own."""
    parts = low_rank_parts(seed, num_inputs, ranks, dtypes[0])
    num_outputs = parts[-1].columns.stop + 5
    x = random(num_rows, num_inputs + 7, seed=seed, dtype=dtypes[1])[:, 3 : 3 + num_inputs]
    whole = random(num_rows + 2, num_outputs, seed=seed + 1, dtype=dtypes[2])
    before, sums = whole.clone(), whole[1 : 1 + num_rows]
    expected = sums.double()
    for part in parts:
        expected[:, part.columns] += x.double() @ part.a.double().T @ part.b.double().T
    NativeLowRankSum(parts).add(x, sums)
    assert error(sums, expected) < close(dtypes[2])
    untouched = torch.ones_like(whole, dtype=torch.bool)
    for part in parts:
        untouched[1 : 1 + num_rows, part.columns] = False
    assert torch.equal(whole[untouched], before[untouched])


@needs_kernels
@given(seed=st.integers(9, 2**31), num_rows=st.integers(2, 11), dtype=DTYPES)
def test_what_an_adapter_adds_to_a_row_depends_on_no_other(
    seed: int, num_rows: int, dtype: torch.dtype
) -> None:
    low = NativeLowRankSum(low_rank_parts(seed, 70, [6, 3], dtype))
    x = random(num_rows, 70, seed=seed, dtype=dtype)
    together = random(num_rows, 150, seed=seed + 1, dtype=dtype)
    alone = together.clone()
    low.add(x, together)
    for row in range(num_rows):
        low.add(x[row : row + 1], alone[row : row + 1])
    assert torch.equal(together, alone)


def test_without_kernels_torch_adds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = low_rank_parts(9, 40, [4, 2], torch.float32)
    x, sums = random(5, 40), random(5, 100, seed=1)
    expected = sums.clone()
    make_sum(parts).add(x, sums)
    monkeypatch.setattr(low_rank, "kernels", lambda: None)
    monkeypatch.setattr(low_rank, "is_sound", low_rank.is_sound.__wrapped__)
    plain = make_sum(parts)
    assert type(plain) is LowRankSum
    plain.add(x, expected)
    assert error(sums, expected) < 1e-6


@needs_kernels
def test_a_kernel_that_adds_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert low_rank.is_sound(torch.float32)
    right = NativeLowRankSum.add

    def wrong(self: NativeLowRankSum, rows: Tensor, sums: Tensor) -> None:
        right(self, rows, sums)
        sums[-1, 0] += 0.1

    monkeypatch.setattr(NativeLowRankSum, "add", wrong)
    assert not low_rank.is_sound.__wrapped__(torch.float32)
