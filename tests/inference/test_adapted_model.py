"""Adapters as models of an engine: listed, asked, killed and refused under their own names."""

import asyncio
import io
import logging
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference import (
    Engine,
    Failed,
    GenerateRequest,
    Loading,
    ModelRefused,
    Tokens,
    UnknownModel,
    Update,
)
from inference.__main__ import WRONG, main
from inference.cli.models import list_models
from inference.config import Adapter, EngineConfig
from tests.inference.conftest import engine_config
from tests.inference.test_engine import PROMPTS, _end, _ids, _request, _run
from tests.inference.tiny_adapters import make_adapter, merged
from tests.inference.tiny_models import make_encoder, make_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapted")
    base = make_model(folder / "base")
    adapter = make_adapter(folder / "pirate", base)
    merged(folder / "merged", base, adapter)
    shutil.copytree(adapter, folder / "broken")
    (folder / "broken" / "adapter_model.safetensors").write_bytes(b"no tensors at all")
    return folder


def config_of(folder: Path, *adapters: Adapter, **settings: object) -> EngineConfig:
    own = (
        Adapter("org/pirate", "tiny", folder / "pirate"),
        Adapter("broken", "tiny", folder / "broken"),
    )
    entries = (f"tiny={folder / 'base'}", f"merged={folder / 'merged'}")
    return engine_config(
        folder / "base", extra_models=entries, adapters=(*own, *adapters), **settings
    )


@pytest.fixture
async def engine(folder: Path) -> AsyncIterator[Engine]:
    running = Engine(config_of(folder))
    yield running
    await running.close()


def ask(model: str, name: str, prompt: tuple[int, ...], **params: object) -> GenerateRequest:
    return replace(_request(name, prompt, **params), model=model)


async def test_an_adapter_is_a_model_in_its_bases_worker(engine: Engine) -> None:
    states = {state.spec.name: state for state in engine.models("chat")}
    pirate = states["org/pirate"].spec
    assert (pirate.base, pirate.title, states["tiny"].spec.base) == ("tiny", "pirate", "")
    assert states["org/pirate"].state == "cold"
    told = await asyncio.gather(
        *(_run(engine, ask(m, m, PROMPTS[2])) for m in ("org/pirate", "tiny", "merged"))
    )
    by_adapter, by_base, by_merged = map(_ids, told)
    assert by_adapter == by_merged != by_base
    assert engine.worker_pids("org/pirate") == engine.worker_pids("tiny")
    adapted, base = engine.state("org/pirate"), engine.state("tiny")
    assert adapted.state == base.state == "ready"
    assert adapted.max_context_tokens == base.max_context_tokens
    assert len({adapted.revision, base.revision, ""}) == 3
    info = engine.info("tiny")
    assert info is not None
    assert [(a.name, a.rank, bool(a.problem)) for a in info.adapters] == [
        ("org/pirate", 4, False),
        ("broken", 0, True),
    ]
    salted = {"cache_salt": ""}
    assert await engine.count_cached("org/pirate", [PROMPTS[2]], **salted) == (40,)
    again = _end(await _run(engine, ask("org/pirate", "again", PROMPTS[2])))
    assert again.usage.cached_tokens == 39
    await engine.unload("org/pirate")
    assert engine.state("tiny").state == "cold"


async def test_a_broken_adapter_is_refused_and_all_others_go_on(engine: Engine) -> None:
    (*_, failed) = await _run(engine, ask("broken", "r", PROMPTS[1]))
    assert isinstance(failed, Failed)
    assert failed.code == "model_refused"
    assert "broken is not served. adapter_model.safetensors is no sound" in failed.message
    assert (engine.state("broken").state, engine.state("broken").detail) == (
        "failed",
        failed.message,
    )
    assert engine.state("org/pirate").state == "ready"
    _end(await _run(engine, ask("org/pirate", "p", PROMPTS[1])))
    (*_, unknown) = await _run(engine, replace(ask("tiny", "u", PROMPTS[1]), adapter="nobody's"))
    assert isinstance(unknown, Failed)
    assert unknown.code == "model_not_found"
    with pytest.raises(UnknownModel):
        engine.generate(ask("unheard-of", "r", PROMPTS[1]))


async def test_a_kill_in_the_middle_goes_on_with_the_adapter(engine: Engine) -> None:
    params = {"max_tokens": 90, "ignore_eos": True, "temperature": 1.0, "seed": 5}
    models = ("org/pirate", "tiny")
    calm = [_ids(await _run(engine, ask(m, f"calm {m}", PROMPTS[2], **params))) for m in models]
    heard: dict[str, list[Update]] = {model: [] for model in models}
    killed: list[int] = []

    async def listen(model: str) -> None:
        request = replace(ask(model, f"storm {model}", PROMPTS[2], **params), cache_salt="storm")
        async for update in engine.generate(request):
            heard[model].append(update)
            pid = engine.worker_pid(model)
            if not killed and pid and all(len(_ids(told)) > 9 for told in heard.values()):
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    await asyncio.gather(*map(listen, models))
    assert killed
    for model, expected in zip(models, calm, strict=True):
        updates = heard[model]
        first = next(i for i, update in enumerate(updates) if isinstance(update, Tokens))
        assert any(isinstance(update, Loading) for update in updates[first:]), "killed too late"
        assert _ids(updates) == expected
    assert calm[0] != calm[1]


async def test_an_adapter_may_bring_its_own_chat_template(folder: Path, tmp_path: Path) -> None:
    """Beside its base's tokenizer, also where the base has no template at all."""
    bare = shutil.copytree(folder / "base", tmp_path / "bare")
    (bare / "chat_template.jinja").unlink()
    for name in ("own", "same", "broken file"):
        shutil.copytree(folder / "pirate", tmp_path / name)
    (tmp_path / "own" / "chat_template.jinja").write_text("Ahoy: {{ messages[0].content }}")
    shutil.copy(folder / "base" / "chat_template.jinja", tmp_path / "same")
    (tmp_path / "broken file" / "tokenizer_config.json").write_text('{"chat_template": [')
    of_base = [Adapter(n, "tiny", tmp_path / n) for n in ("own", "same", "broken file")]
    config = config_of(folder, *of_base, Adapter("bare with own", "bare", tmp_path / "own"))
    engine = Engine(replace(config, extra_models=(*config.extra_models, f"bare={bare}")))
    base = await engine.tokenizer("tiny")
    for name in ("org/pirate", "same", "broken file"):
        assert await engine.tokenizer(name) is base
    messages = [{"role": "user", "content": "the dog"}]
    for name in ("own", "bare with own"):
        tokenizer = await engine.tokenizer(name)
        assert tokenizer.decode(tokenizer.encode_chat(messages)) == "Ahoy: the dog"
    assert tokenizer.encode_chat(messages) != base.encode_chat(messages)
    with pytest.raises(ModelRefused, match="no chat template"):
        await engine.tokenizer("bare")
    await engine.close()


def test_adapters_without_a_base_are_left_out_and_say_why(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_encoder(tmp_path / "labels", labels=("good", "bad"))
    path = folder / "pirate"
    config = config_of(
        folder,
        Adapter("orphan", "org/later", path),
        Adapter("nested", "org/pirate", path),
        Adapter("merged", "tiny", path),
        Adapter("scores", "labels", path),
        models_dir=tmp_path,
    )
    entries = (*config.extra_models, f"labels={tmp_path / 'labels'}")
    with caplog.at_level(logging.WARNING):
        engine = Engine(replace(config, extra_models=entries))
        engine.refresh()
    told = [record.message for record in caplog.records]
    assert told == [
        "There is no model 'org/later' for the adapter 'orphan'.",
        "'org/pirate' is an adapter itself; 'nested' needs the model behind it.",
        "'merged' is the name of a model already, and cannot be an adapter's.",
        "'labels' is a classifier; adapters are served of chat and embedding models.",
    ]
    assert not {"orphan", "nested", "scores"} & {s.spec.name for s in engine.models()}
    assert engine.spec("merged").base == ""
    shutil.copytree(folder / "base", tmp_path / "org" / "later")
    assert "orphan" in {state.spec.name for state in engine.models()}


async def test_an_adapter_goes_with_its_base(folder: Path, tmp_path: Path) -> None:
    base = tmp_path / "org" / "base"
    adapter = Adapter("aboard", "org/base", folder / "pirate")
    shutil.copytree(folder / "base", base)
    engine = Engine(config_of(folder, adapter, models_dir=tmp_path))
    await engine.tokenizer("aboard")
    shutil.rmtree(base)
    assert not {"org/base", "aboard"} & {state.spec.name for state in engine.models()}
    shutil.copytree(folder / "base", base)
    assert "aboard" not in {state.spec.name for state in engine.models()}, (
        "its base is on its way out"
    )
    await asyncio.sleep(0.05)
    assert {"org/base", "aboard"} <= {state.spec.name for state in engine.models()}
    await engine.close()


def test_the_list_of_models_has_adapters(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VITRINE_MODELS", f"tiny={folder / 'base'}")
    entries = (f"{name}=tiny+{folder / name}" for name in ("pirate", "broken"))
    monkeypatch.setenv("VITRINE_ADAPTERS", ",".join([*entries, "orphan=large+/nowhere"]))
    monkeypatch.setattr(sys, "argv", ["inference", "models"])
    assert main() == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "of rank 4 for tiny" in lines["pirate"]
    assert "no sound safetensors file" in lines["broken"]
    assert "There is no model 'large'" in lines["orphan"]
    config = replace(config_of(folder, Adapter("orphan", "large", folder)), extra_models=())
    told = {line.split()[0]: line for line in list_models(config)}
    assert "no model 'tiny'" in told["org/pirate"]
    monkeypatch.setattr(sys, "argv", ["inference", "chat", "orphan"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hello")))
    assert main() == WRONG
    assert capsys.readouterr().err == "There is no model 'large' for the adapter 'orphan'.\n"
    monkeypatch.setattr(sys, "argv", ["inference", "models"])
    monkeypatch.setenv("VITRINE_ADAPTERS", "pirate")
    assert main() == WRONG
    assert "VITRINE_ADAPTERS: 'pirate' is not NAME=MODEL+PATH." in capsys.readouterr().err
