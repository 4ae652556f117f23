"""Which models are served, which are refused, and that the refusal says why."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from inference import EngineConfig, ModelRefused, ModelTooLarge
from inference.catalog import BUILTIN, BUILTIN_EMBEDDING, discover
from inference.defaults import SamplingDefaults, read_context_tokens, read_sampling_defaults
from inference.encoder_layout import read_encoder_layout
from inference.kinds import kind_of, read_kind
from inference.loader import load_model
from inference.selftest import MAX_RELATIVE_ERROR, worst_error
from inference.weights import read_config, read_weights


@pytest.mark.parametrize("position", [0, 1, 2])
def test_no_number_is_the_worst_error(position: int) -> None:
    pairs = [(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + i])) for i in range(3)]
    assert worst_error(pairs) == 0.5
    pairs[position][0][1] = torch.nan
    assert not worst_error(pairs) <= MAX_RELATIVE_ERROR


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"auto_map": {"AutoModel": "evil.Model"}}, "own Python code"),
        ({"architectures": ["BertForMaskedLM"]}, "no causal language model"),
    ],
)
def test_a_config_alone_can_be_reason_enough(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelRefused, match=words):
        kind_of(config, is_pooled=False)


def test_weights_are_counted_from_their_headers(tiny_model: Path) -> None:
    weights = read_weights(tiny_model)
    assert weights.size_bytes == (tiny_model / "model.safetensors").stat().st_size
    assert weights.num_parameters * 4 < weights.size_bytes < weights.num_parameters * 4 + 10_000


@pytest.mark.parametrize("is_sharded", [True, False])
def test_weights_that_are_there_a_second_time_do_not_count(
    tiny_model: Path, tmp_path: Path, is_sharded: bool
) -> None:
    whole = (tiny_model / "model.safetensors").read_bytes()
    name = "model-00001-of-00001.safetensors" if is_sharded else "model.safetensors"
    for file in (name, "consolidated.safetensors"):
        (tmp_path / file).write_bytes(whole)
    (tmp_path / "config.json").write_bytes((tiny_model / "config.json").read_bytes())
    if is_sharded:
        index = {"weight_map": {"lm_head.weight": name}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert read_weights(tmp_path).size_bytes == len(whole)


def test_the_revision_changes_with_the_files(tiny_model: Path, tmp_path: Path) -> None:
    before = read_weights(tiny_model).revision
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_model / name).read_bytes())
    assert read_weights(tmp_path).revision == before
    changed = bytearray((tmp_path / "model.safetensors").read_bytes())
    changed[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(changed)
    assert read_weights(tmp_path).revision != before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        struct.pack("<Q", 2**63),
        struct.pack("<Q", 10) + b"not json..",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 31) + b'{"t": {"data_offsets": [0, 0]}}',
        struct.pack("<Q", 60)
        + b'{"t": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}'[:60],
    ],
)
def test_hostile_weight_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelRefused, match=r"model\.safetensors"):
        read_weights(tmp_path)


def test_a_file_that_was_cut_short_is_named(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    whole = (tiny_model / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-100])
    with pytest.raises(ModelRefused, match="cut short"):
        read_weights(tmp_path)


def test_pickled_weights_are_never_opened(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    with pytest.raises(ModelRefused, match="never loaded"):
        read_weights(tmp_path)


def test_a_model_that_does_not_fit_tells_both_numbers(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inference import memory

    monkeypatch.setattr(memory, "available_bytes", lambda: 100_000)  # a smaller machine
    with pytest.raises(ModelTooLarge, match=r"needs about .* GiB .* are free") as caught:
        load_model("tiny", tiny_model, lambda phase, fraction: None, torch.float32)
    assert caught.value.needed_bytes > caught.value.available_bytes == 100_000


@pytest.mark.parametrize("content", ["{", "[]", '"text"'])
def test_a_config_that_is_no_object_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ModelRefused, match=r"config\.json"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        {"max_position_embeddings": "32k"},
        {"max_position_embeddings": [1]},
        {"max_position_embeddings": 1e999},
        {"text_config": [1]},
        {"text_config": "none"},
        {"rope_scaling": [1]},
        {"rope_scaling": {"rope_type": "dynamic", "original_max_position_embeddings": "x"}},
    ],
)
def test_a_context_that_is_no_number_is_refused(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelRefused, match="say what cannot be"):
        read_context_tokens(tmp_path)
    with pytest.raises(ModelRefused):
        read_encoder_layout(tmp_path)


def test_files_nested_without_end_are_refused_and_take_nothing_else_down(tmp_path: Path) -> None:
    path = tmp_path / "org" / "deep"
    path.mkdir(parents=True)
    nested = "[" * 200_000
    for name in ("config.json", "modules.json"):
        (path / name).write_text(nested)
        assert discover(EngineConfig(models_dir=tmp_path))["org/deep"].kind == "chat"
        with pytest.raises(ModelRefused):
            read_config(path)
        with pytest.raises(ModelRefused):
            read_encoder_layout(path)
    (path / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}))
    assert read_kind(path) == "embedding"
    with pytest.raises(ModelRefused, match=r"modules\.json cannot be read"):
        read_encoder_layout(path)


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=r"no config\.json"):
        read_config(tmp_path)


def test_the_catalogue_has_the_built_in_the_named_and_the_pulled(tmp_path: Path) -> None:
    pulled = tmp_path / "models" / "Org" / "Pulled"
    pulled.mkdir(parents=True)
    (pulled / "config.json").write_text("{}")
    (tmp_path / "models" / "Org" / "Half").mkdir()
    named = tmp_path / "local"
    config = EngineConfig(
        models_dir=tmp_path / "models",
        extra_models=(f"mine={named}", str(named), "Org/Later", "Org/Pulled"),
    )
    specs = discover(config)
    assert list(specs) == [BUILTIN, BUILTIN_EMBEDDING, "mine", "local", "Org/Later", "Org/Pulled"]
    assert specs["mine"].path == specs["local"].path == named
    assert specs["Org/Later"].path == tmp_path / "models" / "Org" / "Later"


def test_the_makers_sampling_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "generation_config.json"
    assert read_sampling_defaults(tmp_path).temperature == 1.0
    file.write_text(json.dumps({"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}))
    found = read_sampling_defaults(tmp_path)
    assert (found.temperature, found.top_k, found.top_p) == (0.6, 20, 0.95)
    file.write_text(json.dumps({"do_sample": False, "temperature": 0.6}))
    assert read_sampling_defaults(tmp_path).temperature == 0.0

    file.write_text(json.dumps({"temperature": 0.0, "top_p": 0.9, "min_p": None}))
    assert read_sampling_defaults(tmp_path) == SamplingDefaults(temperature=0.0, top_p=0.9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("temperature", value)
            for value in ("hot", -1, 101, math.nan, math.inf, True, [0.5], {})
        ],
        *[("top_p", value) for value in (1.5, -0.1, "0.9", 10**400)],
        *[("top_k", value) for value in (-1, 2**63, 20.5, "50")],
        *[("min_p", value) for value in (-0.1, 1.1)],
        *[("repetition_penalty", value) for value in (0, -1.0, 1000)],
    ],
)
@pytest.mark.parametrize("is_greedy", [False, True])
def test_what_no_request_may_ask_for_is_no_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, value: Any, is_greedy: bool
) -> None:
    settings = {"top_k": 20, "repetition_penalty": 1.1, "do_sample": not is_greedy, name: value}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    found = read_sampling_defaults(tmp_path)
    assert getattr(found, name) == getattr(SamplingDefaults(0.0 if is_greedy else 1.0), name)
    assert found.repetition_penalty == (1.0 if name == "repetition_penalty" else 1.1)
    (warned,) = caplog.messages
    assert f"generation_config.json: not used: {name} " in warned
    assert len(warned) < len(str(tmp_path)) + 120


@pytest.mark.parametrize("text", ["", "[1]", "null", "[" * 100_000, "\x00"])
def test_a_broken_generation_config_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    assert read_sampling_defaults(tmp_path) == SamplingDefaults()


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({}, 2048),
    ],
)
def test_the_context_is_what_the_files_say(
    config: dict[str, Any], tokens: int, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_context_tokens(tmp_path) == tokens
