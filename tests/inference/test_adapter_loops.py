"""An engine loop with adapters: what is cached and guessed, who shares what, and what is refused."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from inference import Failed, Finished, Update
from inference.assembly import assemble
from inference.config import Adapter, EngineConfig
from inference.engine_loop import EngineLoop
from inference.messages import GenerateRequest, ModelInfo, kv_salt
from inference.needs import estimate_needs
from tests.inference.conftest import engine_config
from tests.inference.loops import PROMPTS, answers, make_drafting_loop, make_loop, request, run
from tests.inference.tiny_adapters import make_adapter, merged
from tests.inference.tiny_models import make_model

GIB = 2**30
NAMES = ("", "one", "two")
REPEATING = tuple(range(9, 25)) * 4  # what follows is looked up and guessed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, two adapters of it, and the models with these in their weights."""
    folder = tmp_path_factory.mktemp("adapters")
    base = make_model(folder / "base")
    for seed, name in enumerate(NAMES[1:], start=1):
        adapter = make_adapter(folder / name, base, seed=seed)
        merged(folder / f"with {name}", base, adapter)
    return folder


def config_of(folder: Path, names: tuple[str, ...] = NAMES[1:], **options: Any) -> EngineConfig:
    adapters = tuple(Adapter(name, "tiny", folder / name) for name in names)
    settings = {"adapters": adapters, "step_budget_tokens": 32, **options}
    return engine_config(folder / "base", **settings)


def assembled(config: EngineConfig, path: Path) -> tuple[EngineLoop, ModelInfo]:
    loop, info = assemble("tiny", path, config, lambda *_: None)
    assert isinstance(loop, EngineLoop)
    return loop, info


def loop_of(folder: Path, **options: Any) -> EngineLoop:
    return assembled(config_of(folder, **options), folder / "base")[0]


def asked(adapter: str, name: str, prompt: tuple[int, ...], **params: Any) -> GenerateRequest:
    return replace(request(name, prompt, **params), adapter=adapter)


def plain_answer(folder: Path, adapter: str, prompt: tuple[int, ...], **params: Any) -> list[int]:
    """Of the model that has the adapter in its weights."""
    path = folder / (f"with {adapter}" if adapter else "base")
    return answers(make_loop(path, max_num_drafting=0), request("alone", prompt, **params))[0]


def num_cached(updates: list[Update]) -> int:
    assert isinstance(updates[-1], Finished), updates[-1]
    return updates[-1].usage.cached_tokens


@pytest.mark.parametrize("kv_layout", ["slabs", "paged"])
def test_mixed_requests_answer_as_models_with_the_adapters_in_their_weights(
    folder: Path, kv_layout: str
) -> None:
    """Prompts of one and of several chunks beside each other, each prompt in two ways."""
    loop = loop_of(folder, kv_layout=kv_layout)
    names = ("one", "two", "", "two", "", "one")
    prompts = (*PROMPTS[1:], *PROMPTS[1:])
    requests = [asked(n, str(i), p) for i, (n, p) in enumerate(zip(names, prompts, strict=True))]
    expected = [plain_answer(folder, n, p) for n, p in zip(names, prompts, strict=True)]
    assert answers(loop, *requests) == expected
    assert len({tuple(answer) for answer in expected}) == len(expected)


@pytest.mark.parametrize("kv_layout", ["slabs", "paged"])
def test_what_is_cached_is_an_adapters_own(folder: Path, kv_layout: str) -> None:
    """One prompt by the base and by two adapters, at once and later: nobody has another's keys."""
    loop = loop_of(folder, kv_layout=kv_layout)
    prompt = PROMPTS[3]
    first = run(loop, *(asked(name, f"first {name}", prompt) for name in NAMES))
    assert [num_cached(updates) for updates in first.values()] == [0, 0, 0]
    again = run(loop, *(asked(name, f"again {name}", prompt) for name in NAMES))
    whole = len(prompt) - 1 if kv_layout == "slabs" else (len(prompt) - 1) // 16 * 16
    assert [num_cached(updates) for updates in again.values()] == [whole] * 3
    salted = asked("one", "salted", prompt, cache_salt="somebody else")
    assert num_cached(run(loop, salted)["salted"]) == 0


def test_no_name_and_salt_are_anothers() -> None:
    pairs = list(product(("", "a", "ab", "1:a"), ("", "b", "ab", "1:ab")))
    assert len({kv_salt(name, salt) for name, salt in pairs}) == len(pairs)


def test_two_of_one_adapter_read_their_prompt_once(folder: Path) -> None:
    told = run(loop_of(folder), *(asked("one", str(n), PROMPTS[3]) for n in range(2)))
    assert sorted(num_cached(updates) for updates in told.values()) == [0, len(PROMPTS[3]) - 1]


def test_guesses_are_judged_through_the_adapter(folder: Path) -> None:
    loop = loop_of(folder)
    expected = [plain_answer(folder, n, REPEATING, max_tokens=60) for n in NAMES]
    assert answers(loop, *(asked(n, n, REPEATING, max_tokens=60) for n in NAMES)) == expected
    assert loop.scheduler.num_drafted > loop.scheduler.num_accepted > 0


def test_a_draft_model_guesses_for_adapters_too(folder: Path) -> None:
    """It is the base itself, so that it is right for the base and often wrong for the adapter."""
    adapters = config_of(folder).adapters
    loop, info = make_drafting_loop(folder / "base", folder / "base", adapters=adapters)
    assert info.draft_model
    expected = [plain_answer(folder, n, PROMPTS[2], max_tokens=40) for n in NAMES]
    assert answers(loop, *(asked(n, n, PROMPTS[2], max_tokens=40) for n in NAMES)) == expected
    assert loop.scheduler.speculation.num_asked > loop.scheduler.speculation.num_right > 0
    loop.check()


def test_an_adapter_is_no_draft_model(folder: Path) -> None:
    adapters = (Adapter("small", "other", folder / "one"),)
    entries = (f"tiny={folder / 'base'}", f"other={folder / 'base'}")
    drafts = (("tiny", "small"),)
    config = config_of(folder, adapters=adapters, extra_models=entries, draft_models=drafts)
    _, info = assembled(config, folder / "base")
    assert not info.draft_model
    assert "It is an adapter of other" in info.draft_problem


def test_what_is_wrong_with_an_adapter_is_its_own_problem(folder: Path, tmp_path: Path) -> None:
    wider = make_model(tmp_path / "wider", hidden_size=128)
    make_adapter(tmp_path / "wide", wider)
    (tmp_path / "none").mkdir()
    adapters = (
        Adapter("wide", "tiny", tmp_path / "wide"),
        Adapter("none", "tiny", tmp_path / "none"),
        Adapter("one", "tiny", folder / "one"),
        Adapter("elsewhere", "other", folder / "one"),
    )
    loop, info = assembled(config_of(folder, adapters=adapters), folder / "base")
    problems = {adapter.name: adapter.problem for adapter in info.adapters}
    assert "for another model" in problems["wide"]
    assert "holds no adapter_config.json" in problems["none"]
    assert (problems["one"], len(problems)) == ("", 3)
    told = run(loop, *(asked(n, n, PROMPTS[1]) for n in ("wide", "", "none", "one", "elsewhere")))
    codes = {n: t[-1].code if isinstance(t[-1], Failed) else "" for n, t in told.items()}
    assert codes == {
        "wide": "model_refused",
        "none": "model_refused",
        "elsewhere": "model_not_found",
        "one": "",
        "": "",
    }
    refusal = told["wide"][-1]
    assert isinstance(refusal, Failed)
    assert refusal.message == problems["wide"]
    loop.check()


def test_adapters_of_one_shape_share_their_proof(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inference import adapter_loader

    proven: list[set[str]] = []
    monkeypatch.setattr(
        adapter_loader, "check_adapters", lambda config, kinds: proven.append(kinds)
    )
    assembled(config_of(folder), folder / "base")
    assert [len(kinds) for kinds in proven] == [7]


def test_adapters_take_memory_with_their_model(folder: Path, tmp_path: Path) -> None:
    config, without = config_of(folder), config_of(folder, ())
    own = [assembled(each, folder / "base")[1] for each in (config, without)]
    sizes = [adapter.size_bytes for adapter in own[0].adapters]
    assert own[0].weights_bytes - own[1].weights_bytes == sum(sizes) > 0
    needs = [estimate_needs("tiny", folder / "base", each, GIB) for each in (config, without)]
    assert needs[0].weights_bytes - needs[1].weights_bytes == sum(sizes)
    broken = replace(config, adapters=(Adapter("gone", "tiny", tmp_path / "gone"),))
    assert estimate_needs("tiny", folder / "base", broken, GIB) == needs[1]


def test_a_model_without_memory_for_its_adapters_runs_without_them(folder: Path) -> None:
    config = config_of(folder)
    least = estimate_needs("tiny", folder / "base", config_of(folder, ()), GIB)
    tight = estimate_needs("tiny", folder / "base", config, least.size_bytes)
    assert tight.weights_bytes == least.weights_bytes
    assert "without its adapters: there is no memory for both" in tight.adapter_problem
    loop, info = assembled(config.without_adapters(tight.adapter_problem), folder / "base")
    assert {adapter.size_bytes for adapter in info.adapters} == {0}
    (refused,) = run(loop, asked("one", "r", PROMPTS[1]))["r"]
    assert isinstance(refused, Failed)
    assert "no memory for both" in refused.message
    assert answers(loop, asked("", "base", PROMPTS[1])) == [plain_answer(folder, "", PROMPTS[1])]
