"""The kernels compile for real heads, and fit into the GPUs that they are for. That needs no GPU.

What a kernel computes is tested in the interpreter (`test_gpu_kernels`), which knows no limits.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

KIB = 1024
SHARED_BYTES = {89: 99 * KIB, 90: 227 * KIB}  # CUDA C++ Programming Guide
# Nothing is run: LLVM and ptxas need not make it quick, which is a third of the work. What a kernel
# takes is laid down before either.
AS_IT_IS = {"DISABLE_LLVM_OPT": "1", "DISABLE_PTXAS_OPT": "1", "TRITON_DISABLE_LINE_INFO": "1"}


def compiled(capability: int, cache: pytest.Cache) -> list[dict[str, Any]]:
    """Triton keeps what it has compiled, until a kernel changes."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.inference.compile_kernels", str(capability)],
        env={
            **os.environ,
            **AS_IT_IS,
            "TRITON_INTERPRET": "0",
            "TRITON_CACHE_DIR": str(cache.mkdir("triton")),
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.timeout(600)  # more than a minute of a core, and there may be others
@pytest.mark.parametrize("capability", SHARED_BYTES)
def test_kernels_compile_and_fit(capability: int, request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    of_one_model, *kernels = compiled(capability, request.config.cache)
    names = {kernel["kernel"] for kernel in kernels}
    assert names == {
        "_decode_part",
        "_join_parts",
        "_prefill",
        "_rotate_and_write",
        "_rotate",
        "_gate",
        "_linear",
        "_norm",
        "_quantize",
        "_place_heads",
        "_read_part",
        "_join",
        "_choose_chunks",
        "_choose_tokens",
        "_draw_candidate",
        "_one_row",
        "_several_rows",
        "_dequantize",
    }
    most = max(kernels, key=lambda kernel: kernel["shared_bytes"])
    assert most["shared_bytes"] <= SHARED_BYTES[capability], most
    # Nothing is compiled while answers wait: for whole sequences and for parts of them, for few parts
    # and for many; prefill for few rows and for many; the reading of logits with and without candidates;
    # products of one row, and of up to 16, 32 and 64.
    assert of_one_model == {
        "_decode_part": 2 if capability < 90 else 4,  # where each may have more: few and many
        "_join_parts": 2,
        "_prefill": 2,
        "_read_part": 2,
        "_join": 1,
        "_choose_chunks": 1,
        "_choose_tokens": 1,
        "_draw_candidate": 1,
        "_one_row": 1,
        "_several_rows": 3,
    }
