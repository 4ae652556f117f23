"""Compiles the kernels for a GPU that is not there, and prints what each takes of it, a JSON line each.

`python -m tests.inference.compile_kernels CAPABILITY`, in a process of its own: TRITON_INTERPRET has to
be 0 from the start. Wrappers are called as for a step; nothing is launched.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import torch
import triton.runtime.jit as jit
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from inference.gpu import few_rows, norms, tiles, whole
from inference.gpu.decode import decode
from inference.gpu.drawing import draw
from inference.gpu.few_rows import Norm
from inference.gpu.gated import gate
from inference.gpu.heads import place_heads
from inference.gpu.prefill import prefill
from inference.gpu.quantizing import quantize_rows
from inference.gpu.rows import rotate
from inference.gpu.sampling import Knobs, Tier
from inference.gpu.writing import write, write_only
from inference.whole_linear import WholeWeight
from tests.inference.kernel_cases import BLOCK_TOKENS

# Real ones: (heads, kv_heads, head_dim, value_dim, options)
SHAPES: dict[str, tuple[int, int, int, int, dict[str, Any]]] = {
    "qwen3-8b": (32, 8, 128, 128, {}),
    "gemma2-9b": (16, 8, 256, 256, {"softcap": 50.0, "window": 4096}),
    "gpt-oss": (64, 8, 64, 64, {"window": 128}),
    "glm4": (32, 2, 128, 128, {}),
    "phi2": (32, 32, 80, 80, {}),
    "deepseek-v2-lite": (16, 16, 192, 128, {}),
    "gemma4": (8, 1, 512, 512, {}),
}


class Target:
    """What triton asks a driver when it compiles."""

    def __init__(self, capability: int) -> None:
        self.target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def note_compiled(found: dict[int, Any]) -> None:
    """From now on a launch compiles only; `found` gets each kernel that came of one."""
    run = jit.JITFunction.run

    def compile_only(self: Any, *args: Any, **options: Any) -> Any:
        kernel = run(self, *args, **{**options, "warmup": True})
        found[id(kernel)] = kernel
        return kernel

    jit.JITFunction.run = compile_only


def attend(name: str, dtype: torch.dtype) -> None:
    """A step that decodes, one of drafts, and one of prompts."""
    heads, kv_heads, head_dim, value_dim, options = SHAPES[name]
    if name == "gpt-oss":
        options = {**options, "sinks": torch.zeros(heads, dtype=dtype)}
    pages = [
        torch.empty(4, BLOCK_TOKENS, kv_heads, dim, dtype=dtype) for dim in (head_dim, value_dim)
    ]
    tables, lengths = torch.zeros(2, 2, dtype=torch.int32), torch.ones(2, dtype=torch.int32)
    starts = torch.zeros(3, dtype=torch.int32)
    for num_tokens in (2, 6, 200):
        query = torch.empty(num_tokens, heads, head_dim, dtype=dtype)
        if num_tokens == 2:
            decode(query, *pages, tables, lengths, **options)
        else:
            prefill(query, *pages, tables, starts, lengths, **options)


def write_and_gate(dtype: torch.dtype) -> None:
    pages = torch.empty(4, BLOCK_TOKENS, 2, 64, dtype=dtype)
    rows, slots = torch.empty(3, 2, 64, dtype=dtype), torch.zeros(3, dtype=torch.int64)
    angles = (rows[:, 0], rows[:, 0])
    write_only(rows, rows, slots, pages, pages)
    for is_interleaved in (False, True):
        write(rows, rows, rows, slots, pages, pages, angles, is_interleaved=is_interleaved)
    heads, half = rows.transpose(0, 1)[None], rows[None, :, 0]
    rotate(heads, half, half)
    gate(torch.empty(3, 2000, dtype=dtype))
    gate(torch.empty(3, 2000, dtype=dtype), "gelu_tanh")


def products_of_few_rows(num_rows: int, dtype: torch.dtype, sizes: Sequence[int]) -> None:
    """A layer's, whose weights have that `dtype`."""
    width, inner, heads, kv_heads = sizes
    x, norm = few(num_rows, width), Norm(few(width), 1e-6)
    scales = torch.empty(2 * inner) if dtype.itemsize == 1 else None
    packed = few((heads + 2 * kv_heads) * 128, width).to(dtype)
    gates, down = few(2 * inner, width).to(dtype), few(width, inner).to(dtype)
    few_rows.linear(x, packed, norm=norm, scales=scales)
    few_rows.linear(x, gates, norm=norm, scales=scales, is_gated=True)
    few_rows.linear(few(num_rows, inner), down, residual=x, scales=scales)


def between_products_of_few_rows(num_rows: int, sizes: Sequence[int]) -> None:
    width, inner, heads, kv_heads = sizes
    x, norm, heads_norm = few(num_rows, width), Norm(few(width), 1e-6), Norm(few(128), 1e-6)
    pages = few(4, BLOCK_TOKENS, kv_heads, 128)
    angles = (few(num_rows, 128), few(num_rows, 128))
    slots = torch.zeros(num_rows, dtype=torch.int64)
    row = few(num_rows, (heads + 2 * kv_heads) * 128)
    norms.normed_sum(x, x, norm)
    norms.normed(x, norm)
    quantize_rows(few(num_rows, inner), 256, 448.0)
    place_heads(row, heads, angles, slots, pages, pages, (heads_norm, heads_norm))


def few(*size: int) -> Tensor:
    return torch.empty(*size, dtype=torch.bfloat16)


def layers_of_few_rows(*numbers_of_rows: int) -> None:
    """Weights in 16 and in 8 bits. Of a narrow layer what has tiles of its own."""
    narrow, wide = (1024, 3072, 16, 8), (4096, 12288, 32, 8)
    if 1 in numbers_of_rows:
        products_of_few_rows(1, torch.bfloat16, narrow)
    for num_rows in numbers_of_rows:
        for dtype in (torch.bfloat16, torch.float8_e4m3fn):
            products_of_few_rows(num_rows, dtype, wide)
        between_products_of_few_rows(num_rows, wide)


def whole_weight(num_in: int, num_out: int, bits: int) -> WholeWeight:
    num_groups = -(-num_in // 32)
    words = torch.empty(num_out, num_groups, bits, dtype=torch.int32)
    factors = torch.empty(num_out, num_groups, dtype=torch.uint8) if bits == 4 else None
    return WholeWeight(words, factors, torch.empty(num_out), num_in)


def layers_of_whole_numbers(*numbers_of_rows: int) -> None:
    """A layer's products, and weights that are spelt out for many rows."""
    width, inner = 4096, 12288
    norm = Norm(few(width), 1e-6)
    for bits in (4, 8):
        gates, down = whole_weight(width, 2 * inner, bits), whole_weight(inner, width, bits)
        whole.dequantize(down, slice(0, 128), torch.bfloat16)
        if 1 in numbers_of_rows:
            whole.linear(few(1, width), gates, norm=norm, is_gated=True)
        for num_rows in numbers_of_rows:
            whole.linear(few(num_rows, width), gates, norm=norm if num_rows == 1 else None)
            if num_rows <= 2:  # behind a product, however many rows it has
                whole.linear(few(num_rows, inner), down, residual=few(num_rows, width))


def whole_numbers_that_fill_no_block(*numbers_of_rows: int) -> None:
    """In float32, which takes most memory."""
    width = 1000
    norm = Norm(torch.empty(width), 1e-6)
    for bits in (4, 8):
        weight = whole_weight(width, 2 * 2744, bits)
        whole.dequantize(weight, slice(0, 128), torch.float32)
        for num_rows in numbers_of_rows:
            settings: Any = {"norm": norm, "is_gated": True} if num_rows == 1 else {}
            whole.linear(torch.empty(num_rows, width), weight, **settings)


def whole_products_as_time_goes_by() -> None:
    """One layer's: other numbers of rows."""
    weight = whole_weight(4096, 6144, 4)
    for num_rows in (1, 2, 3, 8, 16, 17, 32, 33, 64):
        whole.linear(torch.empty(num_rows, 4096, dtype=torch.bfloat16), weight)


def decode_and_prefill_as_time_goes_by() -> None:
    """One model's steps: other batches, contexts, splits."""
    pages = torch.empty(4, BLOCK_TOKENS, 8, 128, dtype=torch.bfloat16)

    def query(num_tokens: int) -> Tensor:
        return torch.empty(num_tokens, 32, 128, dtype=torch.bfloat16)

    for batch in (1, 2, 3, 8, 16, 17):
        lengths = torch.ones(batch, dtype=torch.int32)
        starts = torch.zeros(batch + 1, dtype=torch.int32)
        for num_blocks in (1, 2, 16, 37):
            tables = torch.zeros(batch, num_blocks, dtype=torch.int32)
            for num_splits in (1, 3, 16):
                decode(query(batch), pages, pages, tables, lengths, num_splits=num_splits)
            for num_tokens in (batch + 1, 40 * batch):
                prefill(query(num_tokens), pages, pages, tables, starts, lengths)


def draw_as_time_goes_by(vocab: int, dtype: torch.dtype) -> None:
    """One model's draws: other batches, whose logits are the first rows of a larger tensor."""
    logits = torch.empty(256, vocab, dtype=dtype)
    for batch in (1, 2, 3, 8, 16, 17, 256):
        knobs, positions = Knobs.empty(batch, logits.device), torch.zeros(batch, dtype=torch.int64)
        for tier in (Tier.GREEDY, Tier.OPEN, Tier.NARROW, Tier(7)):
            draw(logits[:batch], positions, knobs, tier)


def main(capability: int) -> None:
    found: dict[int, Any] = {}
    note_compiled(found)
    driver.set_active(Target(capability))
    if capability == 90:  # of which each program may have more
        tiles.shared_bytes = lambda: 227 * 1024  # type: ignore[assignment]
    decode_and_prefill_as_time_goes_by()
    draw_as_time_goes_by(151_936, torch.float32)
    whole_products_as_time_goes_by()
    names = [kernel.metadata.name for kernel in found.values()]
    print(json.dumps({name: names.count(name) for name in names}))
    # What has no products of tensor cores is compiled alike for all: once each must do for the others.
    one = () if capability == 90 else (1,)
    write_and_gate(torch.bfloat16)
    layers_of_few_rows(*one, 2, 8)
    layers_of_whole_numbers(*one, 2, 32, whole.MOST_ROWS)
    whole_numbers_that_fill_no_block(*one, 2, 32, whole.MOST_ROWS)
    for name in SHAPES:
        attend(name, torch.bfloat16)
    attend("deepseek-v2-lite", torch.float32)
    if capability != 90:
        write_and_gate(torch.float32)
        draw_as_time_goes_by(262_144, torch.bfloat16)
        draw_as_time_goes_by(50_257, torch.float16)
    for kernel in found.values():
        print(json.dumps({"kernel": kernel.metadata.name, "shared_bytes": kernel.metadata.shared}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
