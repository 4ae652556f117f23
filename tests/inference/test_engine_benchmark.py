"""`python -m benchmarks.engine --quick`: every scenario runs, and its JSON says what it promises."""

import json
import subprocess
import sys
from time import monotonic
from typing import Any

import pytest
import torch

from benchmarks.engine.accuracy import loss
from benchmarks.engine.ceilings import Ceilings
from benchmarks.engine.cpu_meter import CpuMeter
from benchmarks.engine.drawing import SETTINGS
from benchmarks.engine.fairness import jain_index
from benchmarks.engine.floor import Floor
from benchmarks.engine.stall import steps_of
from inference.cli.jobs import Job, Trace
from inference.cli.shapes import SHAPES

PEERS = ("transformers generate", "transformers continuous batching")
PAIRS = {f"vitrine bfloat16 / {peer}" for peer in PEERS}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one quick run of all scenarios wrote."""
    file = tmp_path_factory.mktemp("bench") / "engine.json"
    words = ["--quick", "--dtypes", "bfloat16", "int3", "--json", str(file), "--peers", *PEERS]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "vitrine int3 is skipped: the engine has no such type" in done.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    return found


pytestmark = pytest.mark.timeout(600)  # the fixture starts five processes with torch


@pytest.mark.parametrize(
    ("scenario", "workloads"),
    [
        ("prefill", {"prefill 128"}),
        ("decode", {"decode 1", "decode 4"}),
        ("mixed", {"mixed 6"}),
    ],
)
def test_peers_are_beside_us_with_ratios(
    result: dict[str, Any], scenario: str, workloads: set[str]
) -> None:
    found = result["shapes"]["tiny"][scenario]
    assert set(found["ratios"]) == workloads
    for pairs in found["ratios"].values():
        assert set(pairs) == PAIRS
        assert all(ratio > 0 for pair in pairs.values() for ratio in pair.values())
    measured = {(row["workload"], row["system"]): row for row in found["rows"]}
    assert {name for name, _ in measured} == workloads
    assert {system for _, system in measured} == {"vitrine bfloat16", *PEERS}
    for row in measured.values():
        assert row["tok/s"] > 0
        assert row["tok/CPU-s"] > 0
        assert 0 < row["% of floor"] < 100


def test_logits_are_set_beside_those_of_float32(result: dict[str, Any]) -> None:
    rows = result["shapes"]["tiny"]["accuracy"]["rows"]
    assert [row["system"] for row in rows] == ["vitrine bfloat16", "transformers generate"]
    for row in rows:
        assert 0 < row["logits error %"] < 5
        assert 0 <= row["KL nats"] < 0.01
        assert row["same first choice %"] > 90


def test_drawing_is_set_beside_greedy_answers(result: dict[str, Any]) -> None:
    found = result["shapes"]["tiny"]["drawing"]
    assert [row["drawn"] for row in found["rows"]] == list(SETTINGS)
    (ratios,) = found["ratios"].values()
    assert ratios.pop("greedy / greedy") == 1
    assert all(0.05 < ratio < 3 for ratio in ratios.values())


def test_a_conversation_is_read_from_the_cache(result: dict[str, Any]) -> None:
    found = result["shapes"]["tiny"]["turns"]
    (row,) = found["rows"]
    assert row["prompt tokens"] == 64 + 3 * 16 + 2 * 16
    # All but the new question, and the last token of the last answer, which was never computed.
    assert row["cached tokens"] == row["prompt tokens"] - 16 - 1
    assert found["ratios"]["vitrine bfloat16"]["cold / warm"] > 0


def test_a_long_prompt_and_other_users_are_measured(result: dict[str, Any]) -> None:
    found = result["shapes"]["tiny"]
    (stall,) = found["stall"]["rows"]
    assert min(stall["before, median ms"], stall["after, median ms"], stall["read tok/s"]) > 0
    assert stall["worst ms"] >= stall["beside, median ms"] > 0
    assert found["stall"]["ratios"]["vitrine bfloat16"]["p99 / undisturbed"] > 0
    (fair,) = found["fairness"]["rows"]
    assert fair["TTFT beside ms"] > 0
    assert 1 / fair["equal users"] <= fair["Jain index"] <= 1


def test_of_an_overload_no_request_is_lost(result: dict[str, Any]) -> None:
    (row,) = result["shapes"]["tiny"]["overload"]["rows"]
    assert row["lost"] == row["retry_after_s missing"] == 0
    assert row["finished"] + row["refused"] == row["requests"]
    assert row["finished"] > 0
    waiting_tokens = result["setting"]["overload_waiting_tokens"]
    per_request = sum(result["setting"][f"overload_{n}_tokens"] for n in ("prompt", "output"))
    # Those that were preempted come on top of what was let in.
    most = waiting_tokens // per_request + 1 + result["setting"]["max_num_sequences"]
    assert row["longest queue"] <= most


def test_what_it_was_measured_on_is_told(result: dict[str, Any]) -> None:
    assert result["machine"]["cores"] >= 1
    assert set(result["load_average"]) == {"before", "after"}
    assert isinstance(result["is_busy"], bool)
    assert list(result["skipped"]) == ["vitrine int3"]
    for ceilings in result["ceilings"]:
        assert ceilings["read_bytes_per_s"] > 1e8
        assert set(ceilings["gemm_per_s"]) == {"float32", "bfloat16", "int8"}


def test_an_unknown_scenario_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine", "speed"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no scenario 'speed'" in done.stderr


# --- what the figures are made of ---------------------------------------------------------------


def test_a_loss_is_of_what_softmax_sees() -> None:
    expected = torch.tensor([[2.0, 0.0, -2.0], [0.0, 3.0, -3.0]])
    same = loss(expected + torch.tensor([[5.0], [-1.0]]), expected)
    assert (same.logits_error, same.same_top) == (pytest.approx(0, abs=1e-6), 1)
    assert same.kl_nats == pytest.approx(0, abs=1e-6)
    doubled = loss(2 * expected, expected)
    assert doubled.logits_error == pytest.approx(1)
    assert doubled.kl_nats > 0.01
    assert loss(-expected, expected).same_top == 0


def test_the_floor_of_a_step_is_bandwidth_for_one_and_arithmetic_for_many() -> None:
    config = SHAPES["qwen2.5-0.5b"]
    floor = Floor(config, "bfloat16", Ceilings(1e10, {"bfloat16": 1e12}))
    num_parameters, kv_bytes = 494_032_768, 24 * 2 * 2 * 64 * 2
    alone_s = 2 * num_parameters / 1e10
    assert floor.decode_step_s([0]) == pytest.approx(alone_s)
    assert floor.decode_step_s([1000]) == pytest.approx(alone_s + 1000 * kv_bytes / 1e10)
    assert floor.decode_step_s([0] * 1000) == pytest.approx(1000 * 2 * num_parameters / 1e12)
    assert floor.decode_s([10, 10], [3, 2]) == pytest.approx(
        floor.decode_step_s([11, 11]) + floor.decode_step_s([12])
    )
    body = num_parameters - 151_936 * 896
    operations = 2 * body * 512 + 2 * 151_936 * 896 + 2 * 512**2 * 14 * 64 * 24
    assert floor.prefill_s(512) == pytest.approx(operations / 1e12)


def test_cpu_time_is_of_the_stretch_that_was_asked_for() -> None:
    code = (
        "import time; print(0, flush=True); input(); end_s = time.process_time() + 0.5\n"
        "while time.process_time() < end_s: pass\n"
        "print(1, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # it runs
        with CpuMeter(process.pid) as meter:
            begin_s = monotonic()
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()
            end_s = monotonic()
        process.stdin.write("\n")
        process.stdin.flush()
    assert 0.45 < meter.cpu_s(begin_s, end_s) < 0.75
    middle_s = (begin_s + end_s) / 2
    halves_s = meter.cpu_s(begin_s, middle_s) + meter.cpu_s(middle_s, end_s)
    assert halves_s == pytest.approx(meter.cpu_s(begin_s, end_s))
    assert min(meter.rss_bytes) > 2**20


def test_jain_says_who_got_how_much_when_the_first_was_done() -> None:
    def trace(user: str, *token_s: float) -> Trace:
        return Trace(Job((1,), len(token_s), user=user), 0.0, list(token_s))

    assert jain_index([trace("a", 1, 2), trace("b", 1, 2)]) == 1
    # One has two tokens when it ends, the other none.
    assert jain_index([trace("a", 1, 2), trace("b", 3, 4)]) == pytest.approx(0.5)


def test_a_step_beside_a_prompt_is_set_against_one_with_as_much_behind_it() -> None:
    # Each step takes a second longer than the last one; those beside the prompt twice as long as that.
    gaps_s = [1.0, 2.0, 3.0, 8.0, 10.0, 12.0, 7.0, 8.0, 9.0]
    token_s = [sum(gaps_s[:number]) for number in range(len(gaps_s) + 1)]
    stream = Trace(Job((1,), len(token_s)), -1.0, [-1.0, *token_s])
    steps = steps_of([stream], begin_s=6.0, end_s=36.0)
    assert [len(part) for part in (steps.before, steps.beside, steps.after)] == [3, 3, 3]
    assert steps.times_calm() == pytest.approx([2.0, 2.0, 2.0])
