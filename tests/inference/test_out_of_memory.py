"""A device that runs out of memory in the middle of steps: a stand-in raises what torch would raise.

It raises in the middle of the model, when some layers have written their keys and values already.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import Failed, Finished
from inference.engine_loop import EngineLoop
from inference.grammar import json_schema_grammar
from inference.messages import GenerateRequest
from inference.out_of_memory import is_fault, is_out_of_memory
from inference.relief import Relief
from tests.inference.fake_cuda import FakeCuda
from tests.inference.loops import PROMPTS, answers, ids, make_loop, request, run
from tests.inference.test_hybrids import MODELS
from tests.inference.tiny_models import make_model

Shortage = Callable[[int], bool]
"""Whether there is no memory for a step of so many tokens."""


@contextmanager
def short_of_memory(loop: EngineLoop, is_short: Shortage) -> Iterator[list[int]]:
    """Within, steps may find no memory in a layer in the middle; the sizes of those that do not."""
    layers = next(m for m in loop.runner.model.modules() if isinstance(m, torch.nn.ModuleList))
    went: list[int] = []

    def before(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        num_tokens = given[0].shape[0] * given[0].shape[1]
        if is_short(num_tokens):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        went.append(num_tokens)

    hook = layers[len(layers) // 2].register_forward_pre_hook(before)
    try:
        yield went
    finally:
        hook.remove()


def _requests(salt: str) -> list[GenerateRequest]:
    seeded = {"temperature": 1.0, "seed": 7}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    again = PROMPTS[1] * 12  # repeats itself, so that tokens are guessed
    return [
        *(request(f"{salt} {n}", prompt, cache_salt=salt) for n, prompt in enumerate(PROMPTS)),
        request(f"{salt} seeded", PROMPTS[3], cache_salt=salt, **seeded),
        request(f"{salt} repeating", again, cache_salt=salt, max_tokens=40),
        request(
            f"{salt} json",
            PROMPTS[2],
            cache_salt=salt,
            grammar=json_schema_grammar(schema),
            ignore_eos=False,
            max_tokens=30,
        ),
    ]


@pytest.fixture(scope="module", params=["slabs", "paged", "states"])
def undisturbed(
    request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EngineLoop, list[list[int]]]:
    if request.param == "states":
        name = next(iter(MODELS))
        path = make_model(tmp_path_factory.mktemp("states") / name, name, **MODELS[name])
        loop = make_loop(path)
    else:
        loop = make_loop(tiny_model, kv_layout=request.param)
    return loop, answers(loop, *_requests("calm"))


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_the_same_whichever_steps_find_no_memory(
    undisturbed: tuple[EngineLoop, list[list[int]]], seed: int
) -> None:
    loop, expected = undisturbed
    relief = loop.scheduler.relief
    relief.budget_tokens, relief.num_sequences = relief._most  # whatever test came before
    rng = random.Random(seed)
    num_failures = 0

    def is_short(num_tokens: int) -> bool:
        nonlocal num_failures
        if rng.random() < 0.1:  # the neighbour that took the memory is gone
            relief.budget_tokens, relief.num_sequences = relief._most
        # A step of one token is tried twice; a second failure would rightly fail the request.
        fails = num_tokens > 1 and rng.random() < 0.5
        num_failures += fails
        return fails

    with short_of_memory(loop, is_short):
        assert answers(loop, *_requests(f"storm {seed}")) == expected
    assert num_failures > 5
    loop.check()


def test_all_goes_on_with_memory_for_four_tokens_and_grows_when_there_is_more(
    undisturbed: tuple[EngineLoop, list[list[int]]],
) -> None:
    loop, expected = undisturbed
    relief = loop.scheduler.relief
    relief.__init__(32, loop.scheduler.max_num_sequences)  # type: ignore[misc]
    with short_of_memory(loop, lambda num_tokens: num_tokens > 4) as went:
        assert answers(loop, *_requests("four")) == expected
        assert max(went) <= 4
    assert relief.budget_tokens <= 8
    long = [request(f"long {n}", PROMPTS[1], max_tokens=300) for n in range(3)]
    answers(loop, *long)
    assert (relief.budget_tokens, relief.num_sequences) == relief._most
    loop.check()


def test_what_never_fits_fails_alone(tiny_model: Path) -> None:
    loop = make_loop(tiny_model)
    good = [request(f"good {n}", prompt) for n, prompt in enumerate(PROMPTS)]
    expected = answers(loop, *good)
    run_model = loop.runner.run

    def run_short(plan: Any) -> Any:
        if any(sequence.id == "huge" for sequence, _ in plan):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return run_model(plan)

    loop.runner.run = run_short  # type: ignore[method-assign]
    huge = request("huge", PROMPTS[2], cache_salt="huge")
    others = [request(f"new {n}", prompt, cache_salt="new") for n, prompt in enumerate(PROMPTS)]
    told = run(loop, *others[:2], huge, *others[2:])
    assert told["huge"][-1] == Failed(
        "generation_failed", "The engine could not run this request: CUDA out of memory."
    )
    assert [ids(told[one.request_id]) for one in others] == expected
    assert all(isinstance(told[one.request_id][-1], Finished) for one in others)
    loop.check()


def test_a_fault_of_the_device_ends_the_process_and_no_request(tiny_model: Path) -> None:
    """Its host goes on with them in another one."""
    loop = make_loop(tiny_model)
    fault = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    def run_badly(plan: Any) -> Any:
        raise fault

    loop.runner.run = run_badly  # type: ignore[method-assign]
    loop.submit(request("one", PROMPTS[1]))
    heard = []
    with pytest.raises(torch.AcceleratorError):
        for frame in loop.step():
            heard += [update for _, update in frame.updates]
    assert not any(isinstance(update, Failed) for update in heard)


@pytest.mark.parametrize(
    "place", ["draws.draw", "engine_loop.EngineLoop._take_all", "draws.rate_prompt"]
)
def test_a_fault_behind_the_step_ends_the_process_as_well(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    loop = make_loop(tiny_model)

    def fail(*args: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(f"inference.{place}", fail)
    loop.submit(request("one", PROMPTS[1], num_prompt_logprobs=0))
    heard = []
    with pytest.raises(torch.AcceleratorError):
        for frame in loop.step():
            heard += [update for _, update in frame.updates]
    assert not any(isinstance(update, Failed) for update in heard)


@pytest.mark.parametrize(
    "words",
    [
        "Triton Error [CUDA]: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`",
    ],
)
def test_what_libraries_say_is_a_fault_where_the_device_is_lost(
    monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    cuda = FakeCuda(is_lost=True)
    cuda.install(monkeypatch)
    assert not is_fault(RuntimeError(words)), "nothing was begun that could be lost"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert is_fault(RuntimeError(words))
    assert not is_fault(torch.OutOfMemoryError("CUDA out of memory."))
    cuda.is_lost = False
    assert not is_fault(RuntimeError(words))
    assert is_fault(torch.AcceleratorError("CUDA error: unspecified launch failure"))


def test_shortages_are_told_from_faults_and_mistakes() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)  # the real words of the processor's allocator
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"))
    for other in (RuntimeError("shapes do not match"), ValueError("memory")):
        assert not is_out_of_memory(other)
        assert not is_fault(other)
    assert is_fault(torch.AcceleratorError("CUDA error: device-side assert triggered"))
    assert not is_fault(torch.OutOfMemoryError("CUDA out of memory."))


def test_a_step_shrinks_to_one_token_and_never_beyond_its_limits() -> None:
    relief = Relief(256, 16)
    sizes = []
    while relief.shrink(relief.budget_tokens, relief.num_sequences):
        sizes.append((relief.budget_tokens, relief.num_sequences))
    assert sizes[0] == (128, 8)
    assert sizes[-1] == (1, 1)
    for _ in range(64 * 9):
        relief.note_calm()
        assert relief.budget_tokens <= 256
    assert (relief.budget_tokens, relief.num_sequences) == (256, 16)
