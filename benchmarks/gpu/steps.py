"""A decode step of so many sequences through an engine loop: what each part of a step's way gains.

The floor is the roofline: weights and the cache are read once, and all is multiplied.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from benchmarks.gpu.loops import VARIANTS, best_loop, each_variant, tokenizer_of
from benchmarks.gpu.roofline import Roofline, add_share
from benchmarks.gpu.timing import Bench, Ceilings
from benchmarks.table import Row
from inference import attention
from inference.device import choose_kernels
from inference.engine_loop import EngineLoop
from inference.fp8 import Fp8Linear, fits
from inference.int8 import quantize
from inference.messages import Failed, GenerateRequest, SamplingParams
from inference.sequence import Sequence as Running
from inference.whole_linear import WholeLinear

BATCHES = (1, 8, 32, 64, 128, 256)
FEW_BITS = {"fp8": 8, "int8": 8, "int4": 4}
_COLUMNS = ("plain", *VARIANTS)
_MOST_PLAIN = 8  # sequences without kernels, which go one by one: minutes with many
_CONTEXT = 512
_QUICK_BATCHES, _QUICK_CONTEXT = (1, 3), 24
# An interpreter of kernels runs each layer's programs of each head one by one.
_QUICK_SHAPE = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
_WARM_STEPS, _QUICK_WARM_STEPS = 4, 1
_MOST_STEPS = 288  # of one sequence, while others' prompts are read, too


def measure_steps(
    bench: Bench, found: Ceilings, shape: dict[str, Any], batches: Sequence[int] = BATCHES
) -> list[Row]:
    """Of each number of sequences a row, with what a step takes for each thing that it uses; `plain` is
    `eager` without our kernels. The host's work is in it: plans, texts and updates."""
    shape = sized(bench, shape)
    config = AutoConfig.for_model(**shape)
    model = random_model(bench, config)
    _choose_kernels(config, bench.device)
    model.set_attn_implementation(attention.NAME)
    batches = _QUICK_BATCHES if bench.is_quick else sorted(batches)
    context = _QUICK_CONTEXT if bench.is_quick else _CONTEXT
    roofline = Roofline.of(found, shape)
    tokenizer = tokenizer_of(shape["vocab_size"])
    rows: list[Row] = [{"sequences": number, "plain ms": None} for number in batches]
    try:
        with plain_attention():
            few = [row for row in rows if row["sequences"] <= _MOST_PLAIN]
            _, loop = next(each_variant(model, tokenizer, (_MOST_PLAIN,), context + _MOST_STEPS))
            _measure(bench, loop, "plain", few, context)
        for name, loop in each_variant(model, tokenizer, batches, context + _MOST_STEPS):
            _measure(bench, loop, name, rows, context)
            del loop  # its pages, before the next one's
    finally:
        attention.use_kernels(None)
    for row in rows:
        best_ms = min((ms for name in _COLUMNS if (ms := row.get(f"{name} ms"))), default=None)
        _add_shares(row, best_ms, roofline.step_s(row["sequences"], row["sequences"] * context))
    return rows


def measure_best(
    bench: Bench,
    found: Ceilings,
    shape: dict[str, Any],
    kind: str,
    batches: Sequence[int] = BATCHES,
) -> list[Row]:
    """With all that a step may use; linear layers are bfloat16's, or in one of FEW_BITS. The roofline is
    bfloat16's in any case, so that percents beyond 100 are what fewer bits gain."""
    shape = sized(bench, shape)
    config = AutoConfig.for_model(**shape)
    model = random_model(bench, config)
    batches = _QUICK_BATCHES if bench.is_quick else sorted(batches)
    context = _QUICK_CONTEXT if bench.is_quick else _CONTEXT
    roofline = Roofline.of(found, shape)
    if kind == "fp8":
        quantize(model, make=Fp8Linear, fits=fits)
    elif kind != "bfloat16":
        make, head = (partial(WholeLinear, bits=bits) for bits in (FEW_BITS[kind], 8))
        quantize(model, make=make, make_head=head)
    rows: list[Row] = [{"sequences": num_sequences} for num_sequences in batches]
    _choose_kernels(config, bench.device)
    try:
        tokenizer = tokenizer_of(shape["vocab_size"])
        model.set_attn_implementation(attention.NAME)
        loop = best_loop(model, tokenizer, batches, context + _MOST_STEPS)
        _measure(bench, loop, kind, rows, context)
        for row in rows:
            floor_s = roofline.step_s(row["sequences"], row["sequences"] * context)
            _add_shares(row, row[f"{kind} ms"], floor_s)
    finally:
        attention.use_kernels(None)
    return rows


def _choose_kernels(config: PretrainedConfig, device: torch.device) -> None:
    """Raises where there are none: what is measured would not be what its name says."""
    if problem := choose_kernels("the model", config, device):
        raise RuntimeError(f"There are no kernels: {problem}")


def sized(bench: Bench, shape: dict[str, Any]) -> dict[str, Any]:
    return shape | _QUICK_SHAPE if bench.is_quick else shape


def random_model(bench: Bench, config: PretrainedConfig) -> Any:
    """Made where it will compute: the weights of eight billion parameters are no file then."""
    with torch.device(bench.device):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def _add_shares(row: Row, step_ms: float | None, floor_s: float) -> None:
    row["tokens/s"] = step_ms and row["sequences"] / step_ms * 1e3
    add_share(row, floor_s, step_ms and step_ms / 1e3)


@contextmanager
def plain_attention() -> Iterator[None]:
    kernels, attention._kernels = attention._kernels, None
    try:
        yield
    finally:
        attention._kernels = kernels


def _measure(
    bench: Bench, loop: EngineLoop | None, name: str, rows: list[Row], context: int
) -> None:
    """Adds two columns, of one loop with one batch after the other: a step, and all prompts before."""
    if loop is not None and rows and not bench.is_quick:
        _step_s(bench, loop, rows[0]["sequences"], context)  # compiles
    for row in rows:
        found = None if loop is None else _step_s(bench, loop, row["sequences"], context)
        row[f"{name} ms"] = found and found[0] * 1e3
        row[f"{name} prompts ms"] = found and found[1] * 1e3


def _step_s(
    bench: Bench, loop: EngineLoop, num_sequences: int, context: int
) -> tuple[float, float]:
    """Of one after the other, behind some that are not counted; and what reading all the prompts
    before took."""
    params = SamplingParams(max_tokens=10**6, temperature=0.0, ignore_eos=True)
    names = [f"{num_sequences} {number}" for number in range(num_sequences)]
    for name in names:
        ids = torch.randint(3, 200, (context,)).tolist()
        loop.submit(GenerateRequest(name, "", tuple(ids), params))
    begin_s = time.perf_counter()
    while loop.scheduler.waiting or not all(map(_is_writing, loop.scheduler.running.values())):
        _step(loop)
    bench.synchronize()
    prompts_s = time.perf_counter() - begin_s
    for _ in range(_QUICK_WARM_STEPS if bench.is_quick else _WARM_STEPS):
        _step(loop)
    assert len(loop.scheduler.running) == num_sequences
    bench.synchronize()
    begin_s = time.perf_counter()
    for _ in range(bench.repeats):
        _step(loop)
    bench.synchronize()
    took_s = time.perf_counter() - begin_s
    for name in names:
        loop.abort(name)
    while not loop.is_idle:
        _step(loop)
    return took_s / bench.repeats, prompts_s


def _is_writing(sequence: Running) -> bool:
    return sequence.num_output > 0


def _step(loop: EngineLoop) -> None:
    for frame in loop.step():
        problems = [update for _, update in frame.updates if isinstance(update, Failed)]
        assert not problems, problems
