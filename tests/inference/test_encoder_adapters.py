"""Adapters of embedding models: as in the weights, alone and beside others, in their base's worker."""

import logging
from array import array
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch
from torch import Tensor, nn
from transformers import AutoConfig
from transformers.pytorch_utils import Conv1D

from inference import Caller, Engine, ModelRefused, merged_weights
from inference.adapted_model import AdaptedModel
from inference.adapter_loader import Base, load_adapters
from inference.adapter_weights import Place
from inference.adapters_selftest import check_encoder_adapters, encoder_error
from inference.catalog import discover, problem_of
from inference.config import Adapter
from inference.encode_messages import Encoded, EncodeRequest, EncoderInput
from inference.encoder_loader import load_encoder
from inference.encoder_loop import EncoderLoop
from inference.encoder_model import EncoderModel
from inference.merged_weights import Change
from inference.messages import Failed, Reply
from inference.small_config import shrink
from tests.inference.conftest import engine_config
from tests.inference.tiny_adapters import make_adapter, merged
from tests.inference.tiny_models import make_encoder

TARGETS = {
    "bert": ("query", "key", "value", "attention.output.dense", "intermediate.dense"),
    "qwen3": ("q_proj", "k_proj", "v_proj", "o_proj", "down_proj"),
}
POOLING = {"bert": "mean", "qwen3": "lasttoken"}
INPUTS = [EncoderInput(array("i", range(5, 5 + n))) for n in (19, 3, 11, 70)]
SHORT = INPUTS[:3]  # which share a row where a model can


def made(
    tmp_path: Path, model_type: str, bits: int | None = None
) -> tuple[EncoderModel, EncoderModel]:
    """A model with the adapters "one" and "two", and one that has "one" in its weights."""
    base = make_encoder(tmp_path / "base", model_type=model_type, pooling=POOLING[model_type])
    paths = [
        make_adapter(tmp_path / name, base, targets=TARGETS[model_type], seed=seed)
        for seed, name in enumerate(("one", "two"))
    ]
    adapters = tuple(Adapter(path.name, "base", path) for path in paths)
    encoder = load(base, bits)
    config = replace(engine_config(base), adapters=adapters)

    def again(change: Change) -> nn.Module:
        again, _ = load_encoder(
            "base", base, lambda *_: None, torch.float32, bits=bits, change=change
        )
        return again.model

    encoder.adapters = load_adapters(
        Base.of_encoder("base", encoder, again), config, lambda *_: None, torch.float32
    )
    assert not [info.problem for info in encoder.adapters.infos.values() if info.problem]
    return encoder, load(merged(tmp_path / "merged", base, paths[0]), bits)


def load(path: Path, bits: int | None = None) -> EncoderModel:
    encoder, _ = load_encoder("base", path, lambda *_: None, torch.float32, bits=bits)
    return encoder


def is_close(found: Tensor, expected: Tensor) -> bool:
    return bool(((found - expected).norm(dim=-1) <= 1e-4 * expected.norm(dim=-1)).all())


@pytest.fixture(params=[merged_weights.MAX_BYTES, 0], ids=["merged", "beside"])
def max_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of a model that has weights of its own for each adapter."""
    monkeypatch.setattr(merged_weights, "MAX_BYTES", request.param)
    return int(request.param)


@pytest.mark.parametrize("model_type", TARGETS)
@pytest.mark.parametrize("inputs", [INPUTS, SHORT, INPUTS[:1]], ids=["padded", "short", "one"])
def test_it_is_as_in_the_weights(
    model_type: str, inputs: Sequence[EncoderInput], tmp_path: Path, max_bytes: int
) -> None:
    encoder, whole = made(tmp_path, model_type)
    before = encoder.encode(inputs)
    found = encoder.encode(inputs, adapter="one")
    assert is_close(found, whole.encode(inputs))
    assert not is_close(found, encoder.encode(inputs, adapter="two"))
    assert not is_close(found, before)
    assert torch.equal(encoder.encode(inputs), before)
    size_bytes = encoder.adapters.infos["one"].size_bytes
    num_layers = len(TARGETS[model_type])
    assert (size_bytes > 64 * 64 * 4 * num_layers) == (max_bytes > 0)


def test_one_in_the_weights_and_one_beside_them_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one of them changes so many layers that it is too large."""
    sizes = iter([merged_weights.MAX_BYTES, 0])
    of = merged_weights.MergedWeights.of

    def only_the_first(*given: Any) -> Any:
        monkeypatch.setattr(merged_weights, "MAX_BYTES", next(sizes))
        return of(*given)

    monkeypatch.setattr(merged_weights.MergedWeights, "of", only_the_first)
    encoder, whole = made(tmp_path, "bert")
    expected = {
        "": encoder.encode(INPUTS),
        "one": whole.encode(INPUTS),
        "two": encoder.encode(INPUTS, adapter="two"),
    }

    def between() -> None:
        inner.append(encoder.encode(SHORT, adapter=other))

    for name in ("one", "two", "", "two", "one", "one", "", "two"):
        for other in ("", "one", "two"):
            inner: list[Tensor] = []
            found = encoder.encode(INPUTS[3:], between, adapter=name)
            assert is_close(found, expected[name][3:]), (name, other)
            assert is_close(inner[0], expected[other][:3]), (name, other)


def test_what_cannot_be_loaded_once_more_is_computed_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> Any:
        raise ModelRefused("no room")

    monkeypatch.setattr(merged_weights.MergedWeights, "of", fail)
    encoder, whole = made(tmp_path, "bert")
    assert is_close(encoder.encode(INPUTS, adapter="one"), whole.encode(INPUTS))


def test_layers_that_have_their_weights_the_other_way_round_are_merged_so() -> None:
    layer = Conv1D(6, 4)  # (inputs 4, outputs 6)
    pair = torch.randn(2, 4), torch.randn(6, 2)
    x, bias = torch.randn(3, 4), layer.bias
    expected = layer(x) + x @ pair[0].T @ pair[1].T
    place = Place(layer, slice(0, 6), 4)
    merged_weights.add_to_weights({"a": place}, {"a": pair})
    assert torch.allclose(layer(x), expected, atol=1e-5)
    assert layer.bias is bias
    shared = {"a": place, "b": Place(layer, slice(0, 6), 4)}
    with pytest.raises(ModelRefused, match="share"):
        merged_weights.add_to_weights(shared, {"a": pair, "b": pair})


def test_in_eight_bits_it_is_as_in_the_weights(tmp_path: Path) -> None:
    encoder, whole = made(tmp_path, "bert", bits=8)
    before = encoder.encode(INPUTS)
    found, expected = encoder.encode(INPUTS, adapter="one"), whole.encode(INPUTS)
    # A last bit of a weight may be rounded to another of 255 numbers.
    assert float((found - expected).norm() / expected.norm()) < 0.005
    assert torch.equal(encoder.encode(INPUTS), before)


def request(
    name: str, inputs: Sequence[EncoderInput], adapter: str, priority: Any
) -> EncodeRequest:
    return EncodeRequest(name, tuple(inputs), None, Caller(name, 1.0, priority), adapter)


def answers(loop: EncoderLoop) -> dict[str, Reply]:
    told: dict[str, Reply] = {}
    while not loop.is_idle:
        for frame in loop.step():
            told |= dict(frame.updates)
    return told


def rows_of(reply: Reply) -> Tensor:
    assert isinstance(reply, Encoded)
    return torch.tensor([list(row) for row in reply.rows()])


@pytest.mark.usefixtures("max_bytes")
def test_a_step_has_texts_of_several_adapters_and_each_goes_through_its_own(tmp_path: Path) -> None:
    encoder, _ = made(tmp_path, "bert")
    loop = EncoderLoop(encoder, max_waiting_tokens=10_000)
    names = ("", "one", "two")
    for name in names:
        loop.submit(request(f"r{name}", INPUTS, name, "interactive"))
    told = answers(loop)
    for name in names:
        assert is_close(rows_of(told[f"r{name}"]), encoder.encode(INPUTS, adapter=name))


@pytest.mark.usefixtures("max_bytes")
def test_who_interrupts_a_chore_leaves_it_its_adapter(tmp_path: Path) -> None:
    encoder, _ = made(tmp_path, "bert")
    loop = EncoderLoop(encoder, max_waiting_tokens=10_000)
    looks: list[float] = []
    urgent: dict[str, Reply] = {}

    def listen(wait_s: float) -> None:
        looks.append(wait_s)
        if len(looks) == 2:  # between its first layers
            loop.submit(request("question", SHORT, "two", "interactive"))

    loop.interrupt_by(listen, lambda frame: urgent.update(frame.updates))
    loop.submit(request("chore", INPUTS[:1], "one", "background"))
    told = answers(loop)
    assert is_close(rows_of(urgent["question"]), encoder.encode(SHORT, adapter="two"))
    assert is_close(rows_of(told["chore"]), encoder.encode(INPUTS[:1], adapter="one"))


def test_an_adapter_that_there_is_not_fails_its_request_alone(tmp_path: Path) -> None:
    encoder, _ = made(tmp_path, "bert")
    loop = EncoderLoop(encoder, max_waiting_tokens=10_000)
    loop.submit(request("lost", SHORT, "three", "interactive"))
    loop.submit(request("found", SHORT, "one", "interactive"))
    told = answers(loop)
    assert isinstance(told["lost"], Failed)
    assert told["lost"].code == "model_not_found"
    assert isinstance(told["found"], Encoded)


@pytest.mark.parametrize("model_type", TARGETS)
def test_the_proof_sees_layers_that_are_multiplied_past_their_modules(
    model_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_encoder(tmp_path / "base", model_type=model_type, pooling=POOLING[model_type])
    config = AutoConfig.from_pretrained(path)
    names = {"bert": "encoder.layer.#.attention.self.query", "qwen3": "layers.#.self_attn.q_proj"}
    kinds = {names[model_type]}
    check_encoder_adapters(config, kinds)
    with pytest.raises(ModelRefused, match="no layer like"):
        check_encoder_adapters(config, {"encoder.layer.#.nothing"})
    monkeypatch.setattr("inference.adapters.Adapters.enter_one", lambda *_: None)
    assert encoder_error(shrink(config), kinds) > 0.01


# --- in the engine --------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def engine(tmp_path: Path, tiny_model: Path) -> AsyncIterator[Engine]:
    base = make_encoder(tmp_path / "base", pooling="mean")
    adapter = make_adapter(tmp_path / "one", base, targets=TARGETS["bert"])
    labels = make_encoder(tmp_path / "labels", labels=("good", "bad"))
    config = engine_config(tiny_model)
    whole = merged(tmp_path / "merged", base, adapter)
    entries = (f"base={base}", f"merged={whole}", f"labels={labels}", f"chat={tiny_model}")
    adapters = (
        Adapter("one", "base", adapter),
        Adapter("own", "base", adapter, is_internal=True),
        Adapter("of labels", "labels", adapter),
    )
    running = Engine(replace(config, extra_models=entries, default_model="chat", adapters=adapters))
    yield running
    await running.close()


def test_nobody_takes_the_name_of_one_of_the_programs_own(tmp_path: Path) -> None:
    base = make_encoder(tmp_path / "base")
    other = make_encoder(tmp_path / "other")
    own = Adapter("own", "base", tmp_path / "a", is_internal=True)
    adapters = (Adapter("own", "base", tmp_path / "b"), own)
    entries = (f"base={base}", f"own={other}")
    config = replace(engine_config(base), extra_models=entries, adapters=adapters)
    found = discover(config)
    assert (found["own"].base, found["own"].is_internal) == ("base", True)
    assert "own" in problem_of(adapters[0], found)
    assert config.adapters_of("base") == (own,)
    served = Engine(replace(config, default_model="base"))._served["own"]
    assert isinstance(served, AdaptedModel)
    assert served.path == own.path


async def test_one_of_the_programs_own_is_shown_to_nobody(engine: Engine) -> None:
    assert {"one", "base"} <= {state.spec.name for state in engine.models()}
    assert "own" not in {state.spec.name for state in engine.models()}
    assert engine.is_internal("own")
    assert not any(map(engine.is_internal, ("one", "base", "there is none")))
    vectors = [
        (await engine.embed(name, ["The quick brown fox."])).vectors for name in ("own", "one")
    ]
    assert is_close(*(torch.tensor([list(v) for v in own]) for own in vectors))


async def test_it_is_a_model_of_its_own_in_its_bases_worker(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert engine.spec("one").kind == "embedding"
    assert "of labels" not in {state.spec.name for state in engine.models()}
    by_files = [await engine.encoder_revision(name) for name in ("base", "one")]
    texts = ["The quick brown fox.", "jumps over the lazy dog " * 9]
    one, base, whole = [
        torch.tensor([list(v) for v in (await engine.embed(name, texts)).vectors])
        for name in ("one", "base", "merged")
    ]
    assert is_close(one, whole)
    assert not is_close(one, base)
    assert engine.worker_pids("one") == engine.worker_pids("base")
    assert [await engine.encoder_revision(name) for name in ("base", "one")] == by_files
    assert len(set(by_files)) == 2
    info = engine.info("base")
    assert info is not None
    assert [adapter.name for adapter in info.adapters] == ["one", "own"]
    assert [engine.state(name).state for name in ("one", "base")] == ["ready", "ready"]
