"""`python -m benchmarks.gpu --quick`: every part runs, on a processor and in Triton's interpreter."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.gpu.__main__ import _Result
from benchmarks.gpu.roofline import Roofline
from benchmarks.gpu.steps import measure_best
from benchmarks.gpu.timing import Bench, Ceilings
from inference.cli.shapes import SHAPES


def measured(path: Path, *parts: str) -> dict[str, Any]:
    words = ["--quick", "--device", "cpu", "--shapes", "tiny", "--json", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.inference.interpreter", "benchmarks.gpu", *parts, *words],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    tables = [rows for rows in found.values() if isinstance(rows, list)]
    assert len(tables) == len(parts) + ("kernels" in parts)
    assert all(row["% of roofline"] > 0 for rows in tables for row in rows)
    return found


@pytest.mark.timeout(600)
def test_kernels_and_steps_are_measured(tmp_path: Path) -> None:
    found = measured(tmp_path / "gpu.json", "kernels", "products", "steps", "fp8", "int4")
    kernels = [*found["kernels"], *found["prompt kernels"]]
    assert all(row["error"] < 0.02 for row in kernels)
    steps = found["steps tiny"]
    assert [row["sequences"] for row in steps] == [1, 3]
    ways = ("plain ms", "eager ms", "+ graphs ms", "+ fusing ms", "+ overlap ms")
    assert all(row[way] > 0 for row in steps for way in ways)
    assert all(row["+ overlap prompts ms"] > 0 for row in steps)
    # Nothing of these is interpreted, which takes what it takes.
    assert all(row["plain prompts ms"] > row["plain ms"] for row in steps)
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


def test_what_a_device_could_do_at_best() -> None:
    """Beside the figures of an H200 that were reckoned before there was any of this."""
    h200 = Ceilings(bytes_per_s=4.3e12, operations_per_s=788e12)
    large, small = (Roofline.of(h200, SHAPES[name]) for name in ("qwen3-8b", "qwen3-0.6b"))
    assert large.step_s(1, 512) == pytest.approx(3.54e-3, rel=0.01)
    assert small.step_s(1, 512) == pytest.approx(0.29e-3, rel=0.02)
    assert 256 / large.step_s(256, 256 * 1024) == pytest.approx(18_400, rel=0.01)
    rng = random.Random(1)
    sizes = [(rng.randint(100, 1024), rng.randint(100, 1024)) for _ in range(256)]
    num_out = sum(num for _, num in sizes)
    assert num_out / large.requests_s(sizes) == pytest.approx(12_700, rel=0.1)
    assert small.requests_s([(10, 1)]) == small.reading_s(10), "its one token comes of reading"


def test_what_has_no_time_any_more_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = _Result(tmp_path / "gpu.json", limit_s=-1.0)
    result.add("steps", "steps", lambda: pytest.fail("the time is over"))
    assert json.loads(result.path.read_text()) == {"left out": ["steps"]}
    assert "--limit-s" in capsys.readouterr().err


def test_without_kernels_nothing_is_told_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.gpu.steps.choose_kernels", lambda *_: "there is no driver")
    bench, found = Bench(torch.device("cpu"), is_quick=True), Ceilings(1e9, 1e9)
    with pytest.raises(RuntimeError, match="no driver"):
        measure_best(bench, found, SHAPES["tiny"], "bfloat16")


def test_without_a_gpu_it_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu"],
        capture_output=True,
        text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 2
    assert "--quick --device cpu" in done.stderr
