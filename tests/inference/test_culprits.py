"""Whatever goes wrong for one request goes wrong for it alone, also in the middle of a shared step."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference import Failed, engine_loop
from tests.inference.loops import PROMPTS, ids, make_loop, request, run

BAD_SEED = 13


def test_who_cannot_draw_fails_alone(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = make_loop(tiny_model)
    sample = engine_loop.sample

    def sample_badly(logits: Any, params: Any, positions: Any) -> list[int]:
        if any(p.seed == BAD_SEED and position > 44 for p, position in zip(params, positions)):  # noqa: B905
            raise RuntimeError("no token")
        return sample(logits, params, positions)

    good = [
        request(f"good {n}", prompt, max_tokens=12, temperature=1.0, seed=n)
        for n, prompt in enumerate(PROMPTS)
    ]
    expected = run(loop, *good)
    monkeypatch.setattr(engine_loop, "sample", sample_badly)
    bad = request("bad", PROMPTS[2], max_tokens=12, temperature=1.0, seed=BAD_SEED)
    told = run(loop, *(replace(r, cache_salt="again") for r in good[:2]), bad, *good[2:])
    assert told.pop("bad")[-1] == Failed(
        "generation_failed", "The engine could not draw a token: no token"
    )
    assert {name: ids(updates) for name, updates in told.items()} == {
        name: ids(updates) for name, updates in expected.items()
    }
    loop.check()
