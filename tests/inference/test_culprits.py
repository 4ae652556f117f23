"""Whatever goes wrong for one request goes wrong for it alone, also in the middle of a shared step."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import Failed, ModelError, draws, logprobs
from tests.inference.loops import PROMPTS, ids, make_loop, request, run

BAD_SEED = 13
NO_NUMBERS = Failed("generation_failed", "The model produced no numbers (NaN) for this prompt.")


@pytest.mark.parametrize("failing", [0, 1])
def test_whose_prompt_cannot_be_rated_fails_alone(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """With its first chunk, behind which it draws nothing yet, or with its last."""
    loop = make_loop(tiny_model)
    good = [request(f"good {n}", prompt, max_tokens=6) for n, prompt in enumerate(PROMPTS[:2])]
    expected = run(loop, *good)
    rate, calls = draws.rate_prompt, iter(range(10))

    def rate_badly(sequence: Any, logits: Any) -> Any:
        if next(calls) == failing:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return rate(sequence, logits)

    monkeypatch.setattr(draws, "rate_prompt", rate_badly)
    bad = request("bad", PROMPTS[2], num_prompt_logprobs=0)
    told = run(loop, *(replace(r, cache_salt="again") for r in good), bad)
    assert told.pop("bad")[-1] == Failed(
        "generation_failed", "The engine could not rate the prompt: CUDA out of memory."
    )
    assert {name: ids(updates) for name, updates in told.items()} == {
        name: ids(updates) for name, updates in expected.items()
    }
    loop.check()


@pytest.mark.parametrize("num_top", [0, 3])
def test_a_long_prompt_is_rated_in_parts(num_top: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(300, 50, generator=torch.Generator().manual_seed(1))
    expected = tuple(logprobs.logprobs_of(logits[n : n + 2], [n, n], num_top)[0] for n in range(50))
    sizes: list[int] = []
    log_total = logprobs.log_total
    monkeypatch.setattr(
        logprobs, "log_total", lambda some: (sizes.append(len(some)), log_total(some))[1]
    )
    found = logprobs.logprobs_of(logits, [n % 50 for n in range(300)], num_top)
    assert found[:50] == expected
    assert len(found) == sum(sizes) == 300
    assert max(sizes) <= 128
    assert logprobs.logprobs_of(logits[:0], [], num_top) == ()


def test_who_cannot_draw_fails_alone(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = make_loop(tiny_model)
    sample = draws.sample

    def sample_badly(logits: Any, params: Any, positions: Any) -> list[int]:
        if any(p.seed == BAD_SEED and position > 44 for p, position in zip(params, positions)):  # noqa: B905
            raise RuntimeError("no token")
        return sample(logits, params, positions)

    good = [
        request(f"good {n}", prompt, max_tokens=12, temperature=1.0, seed=n)
        for n, prompt in enumerate(PROMPTS)
    ]
    expected = run(loop, *good)
    monkeypatch.setattr(draws, "sample", sample_badly)
    bad = request("bad", PROMPTS[2], max_tokens=12, temperature=1.0, seed=BAD_SEED)
    told = run(loop, *(replace(r, cache_salt="again") for r in good[:2]), bad, *good[2:])
    assert told.pop("bad")[-1] == Failed(
        "generation_failed", "The engine could not draw a token: no token"
    )
    assert {name: ids(updates) for name, updates in told.items()} == {
        name: ids(updates) for name, updates in expected.items()
    }
    loop.check()


def test_whose_logits_are_no_numbers_fails_alone(tiny_model: Path) -> None:
    """A broken row of the embedding, which one prompt reads: its keys are nobody else's."""
    loop = make_loop(tiny_model)
    good = [request(f"good {n}", prompt, max_tokens=6) for n, prompt in enumerate(PROMPTS[:2])]
    expected = {name: ids(updates) for name, updates in run(loop, *good).items()}
    broken_id = 350
    assert not any(broken_id in prompt for prompt in PROMPTS)
    with torch.no_grad():
        loop.runner.model.get_input_embeddings().weight[broken_id] = torch.nan
    again = [replace(one, cache_salt="again") for one in good]
    told = run(loop, *again, request("bad", (5, broken_id, 7)))
    assert told.pop("bad")[-1] == NO_NUMBERS
    assert {name: ids(updates) for name, updates in told.items()} == expected
    loop.check()


def test_a_model_of_no_numbers_never_becomes_ready(tiny_model: Path) -> None:
    loop = make_loop(tiny_model)
    with torch.no_grad():
        loop.runner.model.get_output_embeddings().weight[:] = torch.nan
    assert run(loop, request("bad", PROMPTS[0]))["bad"][-1] == NO_NUMBERS
    with pytest.raises(ModelError, match=r"canary token failed: .* produced no numbers"):
        loop.canary()
    loop.check()
