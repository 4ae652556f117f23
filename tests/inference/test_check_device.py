"""`python -m tests.inference.check_device`, here beside a processor; on a GPU it is run by hand."""

import json
import os
import subprocess
import sys


def checked(*words: str) -> tuple[int, list[dict[str, object]]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.inference.check_device", *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_what_is_right_passes() -> None:
    code, rows = checked("cpu", "products", "sees: qwen3_vl", "writes", "answers")
    assert code == 0
    assert [row["check"] for row in rows] == [
        "products of int4",
        "products of int8",
        "products of fp8",
        "sees: qwen3_vl",
        "writes",
        "answers in fp8",
        "answers in int8",
        "answers in int4",
        "answers over fp8",
    ]
    assert all(row["problem"] == "" for row in rows)


def test_a_check_that_fails_is_told_of() -> None:
    code, rows = checked("cuda", "writes")
    assert code == 1
    assert "torch finds no CUDA device" in str(rows[0]["problem"])
