"""`python -m benchmarks.gpu --quick`: every part runs, on a processor and in Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def measured(path: Path, *parts: str) -> dict[str, Any]:
    words = ["--quick", "--device", "cpu", "--shapes", "tiny", "--json", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.inference.interpreter", "benchmarks.gpu", *parts, *words],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.timeout(600)
def test_kernels_and_steps_are_measured(tmp_path: Path) -> None:
    found = measured(tmp_path / "gpu.json", "kernels", "products", "steps", "fp8", "int4")
    assert all(row["error"] < 0.02 for row in found["kernels"])
    steps = found["steps tiny"]
    assert [row["sequences"] for row in steps] == [1, 3]
    ways = ("plain ms", "eager ms", "+ graphs ms", "+ fusing ms", "+ overlap ms")
    assert all(row[way] > 0 for row in steps for way in ways)
    assert all(row["+ overlap prompts ms"] > row["+ overlap ms"] for row in steps)
    for kind in ("fp8", "int4"):
        assert all(row[f"{kind} ms"] > 0 < row["% of roofline"] for row in found[f"{kind} tiny"])
    assert all(row["int4 us"] > 0 < row["int4 spelt out us"] for row in found["products"])


@pytest.mark.timeout(400)
def test_weights_and_requests_are_measured(tmp_path: Path) -> None:
    found = measured(tmp_path / "gpu.json", "dtypes", "serving", "generate", "batching")
    few = {row["system"].removeprefix("vitrine "): row for row in found["dtypes tiny"]}
    assert set(few) == {"bfloat16", "bfloat16+fp8", "int8", "int4", "fp8"}
    for name in ("fp8", "bfloat16+fp8"):
        assert few["bfloat16"]["KL nats"] < few[name]["KL nats"] < 0.1
    assert all(row["a token ms"] > 0 for row in few.values())
    names = [row["scenario"] for row in found["serving tiny"]]
    assert names == [
        "4 requests at once",
        "2 beside prompts of 40",
        "20 a second",
        "kill -9 of the worker",
    ]
    assert all(row["tokens/s"] > 0 for row in found["serving tiny"])
    assert [row["generate, cache"] for row in found["generate tiny"]] == ["dynamic", "static"]
    assert all(row["a token ms"] > 0 for row in found["generate tiny"])
    ours, theirs = found["batching tiny"]
    assert ours["tokens/s"] > 0 < theirs["tokens/s"]
    assert 0 < theirs["TTFT p50 ms"] < 60_000


def test_without_a_gpu_it_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu"],
        capture_output=True,
        text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 2
    assert "--quick --device cpu" in done.stderr
