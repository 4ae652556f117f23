"""What is computed again, or in other pieces, is the same to the last bit: so are the answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import Qwen2Config

from inference import model_runner
from inference.messages import Update
from inference.selftest import packed_error
from inference.sequence import Sequence
from inference.small_config import shrink
from inference.spans import Span
from tests.inference.conftest import needs_kernels
from tests.inference.loops import PROMPTS, ids, make_loop, request, run, step

pytestmark = needs_kernels
DRAWN = {"max_tokens": 70, "ignore_eos": True, "temperature": 1.0}


@pytest.mark.parametrize("num_there", [1, 2, 17, 69])
def test_an_answer_goes_on_behind_any_token_as_if_nothing_had_been(
    tiny_model: Path, num_there: int
) -> None:
    for dtype in ("int8", "float32"):
        loop = make_loop(tiny_model, dtype=dtype)
        asked = [request(f"{n}", prompt, seed=n, **DRAWN) for n, prompt in enumerate(PROMPTS)]
        for whole in asked:
            said = ids(run(loop, whole)[whole.request_id])
            resumed = replace(
                whole,
                request_id="again",
                cache_salt="again",
                output_ids=tuple(said[:num_there]),
                is_replay=True,
            )
            assert ids(run(loop, resumed)["again"]) == said[num_there:], dtype


def test_who_is_preempted_says_what_it_says_alone(tiny_model: Path) -> None:
    long = {**DRAWN, "max_tokens": 200}
    asked = [request(f"{n}", PROMPTS[2], seed=n, cache_salt=f"{n}", **long) for n in range(8)]
    roomy = make_loop(tiny_model, dtype="int8")
    alone = {each.request_id: ids(run(roomy, each)[each.request_id]) for each in asked}
    token_bytes = 64 * 2**20 // roomy.kv.capacity_tokens
    loop = make_loop(tiny_model, dtype="int8", kv_bytes=token_bytes * 720)
    loop.scheduler.estimates.output_tokens = 1.0  # it expects short answers, and takes in too many
    told: dict[str, list[Update]] = {each.request_id: [] for each in asked}
    for each in asked:
        loop.submit(each)
    preempted: set[str] = set()
    while not loop.is_idle:
        before = set(loop.scheduler.running)
        step(loop, told)
        preempted |= before & {s.id for s in loop.scheduler.waiting.sequences}
    assert preempted
    assert {name: ids(updates) for name, updates in told.items()} == alone


@pytest.mark.parametrize("budget", [1, 3, 7, 64])
def test_into_what_pieces_a_prompt_falls_does_not_matter(tiny_model: Path, budget: int) -> None:
    loop = make_loop(tiny_model, dtype="int8")
    asked = request("whole", PROMPTS[3], seed=3, **DRAWN)
    said = ids(run(loop, asked)["whole"])
    loop.scheduler.relief.budget_tokens = budget
    pieces = replace(asked, request_id="pieces", cache_salt="pieces")
    assert ids(run(loop, pieces)["pieces"]) == said


def test_what_of_an_answer_is_read_again_is_read_apart_from_its_prompt() -> None:
    sequence = Sequence(replace(request("a", PROMPTS[1]), output_ids=(7,) * 5))
    assert sequence.num_at_once(3) == len(PROMPTS[1])
    sequence.num_computed = len(PROMPTS[1]) - 1
    assert sequence.num_at_once(3) == 1
    assert not sequence.is_read_again
    sequence.num_computed += 1
    assert [sequence.num_at_once(3), sequence.num_at_once(64)] == [3, 5]
    assert sequence.is_read_again


def test_both_ways_are_proven_when_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[Span] = []
    make = model_runner.Span

    def record(*values: Any) -> Span:
        spans.append(make(*values))
        return spans[-1]

    monkeypatch.setattr(model_runner, "Span", record)
    assert packed_error(shrink(Qwen2Config())) < 1e-4
    of_prompts = [span for span in spans if not span.each_alone]
    assert any(span.num_tokens > 1 and span.start for span in of_prompts), "a chunk behind others"
    assert any(span.each_alone for span in spans)
