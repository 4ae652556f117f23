"""An engine loop in this process, and short greedy answers from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from inference.assembly import assemble
from inference.draft_pace import Pace
from inference.engine_loop import EngineLoop
from inference.messages import (
    Finished,
    GenerateRequest,
    ModelInfo,
    SamplingParams,
    Tokens,
    Update,
)
from tests.inference.conftest import engine_config

PROMPTS = [
    tuple((7 * i + j * 13) % 300 + 3 for j in range(n)) for i, n in enumerate((1, 9, 40, 130))
]


def make_loop(path: Path, **options: Any) -> EngineLoop:
    config = engine_config(path, step_budget_tokens=32, **options)
    return assemble("tiny", path, config, lambda *_: None)[0]


class SteadyPace(Pace):
    """Times as given instead of measured, so that what is decided by them is the same every time."""

    def __init__(self, step_s: float, draft_step_s: float, reading_s: float = 0.0) -> None:
        super().__init__()
        self.given = (step_s, draft_step_s, reading_s)

    def learn_step(self, took_s: float, num_drafted: int) -> None:
        super().learn_step(self.given[0], num_drafted)

    def learn_draft_step(self, took_s: float, num_read: int) -> None:
        super().learn_draft_step(self.given[1] + num_read * self.given[2], num_read)


def make_drafting_loop(
    path: Path, small: Path, *, draft_step_s: float = 0.05, **options: Any
) -> tuple[EngineLoop, ModelInfo]:
    """A loop whose steps count a second each, with a draft model whose steps count less."""
    settings = {"step_budget_tokens": 64, "draft_models": (("tiny", "small"),), **options}
    config = engine_config(path)
    entries = (*config.extra_models, f"small={small}")
    config = replace(config, extra_models=entries, **settings)
    loop, info = assemble("tiny", path, config, lambda *_: None)
    assert isinstance(loop, EngineLoop)
    model = loop.scheduler.speculation.model
    if model is not None:
        pace = SteadyPace(1.0, draft_step_s, draft_step_s / 100)
        model.pace = loop.scheduler.speculation.pace = pace
    return loop, info


def request(name: str, prompt: tuple[int, ...], **params: Any) -> GenerateRequest:
    own = {key: params.pop(key) for key in ("output_ids", "cache_salt") if key in params}
    given: dict[str, Any] = {"max_tokens": 20, "temperature": 0.0, "ignore_eos": True, **params}
    return GenerateRequest(name, "tiny", prompt, SamplingParams(**given), **own)


def run(loop: EngineLoop, *requests: GenerateRequest) -> dict[str, list[Update]]:
    for one in requests:
        loop.submit(one)
    told: dict[str, list[Update]] = {one.request_id: [] for one in requests}  # in this order
    while not loop.is_idle:
        step(loop, told)
    return told


def step(loop: EngineLoop, told: dict[str, list[Update]]) -> None:
    for frame in loop.step():
        for name, update in frame.updates:
            told.setdefault(name, []).append(update)
    loop.kv.check()


def ids(updates: list[Update]) -> list[int]:
    return [i for u in updates if isinstance(u, Tokens) for i in u.ids]


def answers(loop: EngineLoop, *requests: GenerateRequest) -> list[list[int]]:
    told = run(loop, *requests)
    assert all(isinstance(updates[-1], Finished) for updates in told.values()), told
    return [ids(updates) for updates in told.values()]
