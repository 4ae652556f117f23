"""An engine loop in this process, and short greedy answers from it."""

from pathlib import Path
from typing import Any

from inference.assembly import assemble
from inference.engine_loop import EngineLoop
from inference.messages import Finished, GenerateRequest, SamplingParams, Tokens, Update
from tests.inference.conftest import engine_config

PROMPTS = [
    tuple((7 * i + j * 13) % 300 + 3 for j in range(n)) for i, n in enumerate((1, 9, 40, 130))
]


def make_loop(path: Path, **options: Any) -> EngineLoop:
    config = engine_config(path, step_budget_tokens=32, **options)
    return assemble("tiny", path, config, lambda *_: None)[0]


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
