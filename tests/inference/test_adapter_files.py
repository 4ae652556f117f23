"""What an adapter's files say, and the sentences for those that cannot be served."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inference import ModelRefused
from inference.adapter_files import read_adapter
from inference.adapter_weights import place_of, places_of, read_pairs
from inference.config import Adapter, parse_adapters
from tests.inference.tiny_adapters import Tensors, make_adapter
from tests.inference.tiny_models import make_model

Q = "model.layers.0.self_attn.q_proj"
A = f"base_model.model.{Q}.lora_A.weight"
B = f"base_model.model.{Q}.lora_B.weight"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("files") / "model", num_hidden_layers=2)


@pytest.fixture(scope="module")
def sound(model: Path) -> Path:
    return make_adapter(model.parent / "sound", model, targets=("q_proj", "up_proj"))


def test_sizes_are_by_layer(model: Path, tmp_path: Path) -> None:
    path = make_adapter(
        tmp_path / "adapter",
        model,
        targets=("q_proj", "up_proj"),
        rank=4,
        rank_pattern={"up_proj": 2, r"layers\.1\.self_attn\.q_proj": 8},
        alpha_pattern={"layers.0.*": 3},
    )
    files = read_adapter(path)
    assert files.rank == 8
    assert files.targets == ("q_proj", "up_proj")
    found = {name: (low.rank, low.scale) for name, low in files.layers.items()}
    assert found == {
        "model.layers.0.self_attn.q_proj": (4, 3 / 4),
        "model.layers.1.self_attn.q_proj": (8, 8 / 8),
        "model.layers.0.mlp.up_proj": (2, 3 / 2),
        "model.layers.1.mlp.up_proj": (2, 8 / 2),
    }
    low = files.layers[Q]
    assert (low.num_inputs, low.num_outputs) == (64, 64)
    assert files.num_parameters == sum(t.numel() for t in load_file(files.weights).values())


def test_a_stabilized_scale_goes_by_the_root_of_the_rank(model: Path, tmp_path: Path) -> None:
    settings = {"use_rslora": True, "rank": 16, "lora_alpha": 2, "targets": ("q_proj",)}
    files = read_adapter(make_adapter(tmp_path / "adapter", model, **settings))
    assert {low.scale for low in files.layers.values()} == {2 / 16**0.5}


def test_the_revision_changes_with_config_and_weights(sound: Path, tmp_path: Path) -> None:
    config = json.loads((sound / "adapter_config.json").read_text())
    tensors = load_file(sound / "adapter_model.safetensors")
    tensors[A][0, 0] += 1

    def revision(name: str, config: Any, tensors: Tensors) -> str:
        path = tmp_path / name
        path.mkdir()
        (path / "adapter_config.json").write_text(json.dumps(config))
        save_file(tensors, path / "adapter_model.safetensors")
        return read_adapter(path).revision

    same = load_file(sound / "adapter_model.safetensors")
    revisions = [
        read_adapter(sound).revision,
        revision("scale", {**config, "lora_alpha": 1}, same),
        revision("weights", config, tensors),
    ]
    assert revision("same", config, same) == revisions[0]
    assert len(set(revisions)) == 3


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"peft_type": "LOHA"}, "PEFT's kind 'LOHA'"),
        ({"use_dora": True}, "one of DoRA"),
        ({"modules_to_save": ["lm_head"]}, "whole layers of its own"),
        ({"trainable_token_indices": [1, 2]}, "trained embeddings"),
        ({"target_parameters": ["experts.gate_up_proj"]}, "no linear layers"),
        ({"layer_replication": [[0, 1], [0, 2]]}, "several times"),
        ({"alora_invocation_tokens": [5]}, "middle of a prompt"),
        ({"lora_bias": True}, "adds biases"),
        ({"bias": "all"}, "changes biases"),
        ({"init_lora_weights": "pissa_niter_4"}, "began as 'pissa_niter_4'.*PEFT makes a plain one"),
        ({"r": 0}, "rank that is not from 1"),
        ({"r": 10**400}, "rank that is not from 1"),
        ({"r": "many"}, "no numbers"),
        ({"lora_alpha": None}, "no numbers"),
        ({"lora_alpha": float("nan")}, "lora_alpha is no number"),
        ({"rank_pattern": {"q_proj": 5}}, f"says rank 5 for {Q}; its A has 4, its B 4"),
        ({"rank_pattern": {"(": 5}}, "pattern '\\('"),
        ({"rank_pattern": [1]}, "no numbers"),
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_served_is_refused(
    sound: Path, tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    given = json.loads((sound / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps({**given, **config}))
    (tmp_path / "adapter_model.safetensors").symlink_to(sound / "adapter_model.safetensors")
    with pytest.raises(ModelRefused, match=words):
        read_adapter(tmp_path)


def test_a_pattern_that_never_ends_is_matched_at_once(sound: Path, tmp_path: Path) -> None:
    given = json.loads((sound / "adapter_config.json").read_text())
    pattern = {
        "(([a-z._0-9]+)+)+!": 5
    }  # Python's own would take longer than the universe has lasted
    (tmp_path / "adapter_config.json").write_text(json.dumps({**given, "rank_pattern": pattern}))
    (tmp_path / "adapter_model.safetensors").symlink_to(sound / "adapter_model.safetensors")
    assert read_adapter(tmp_path).rank == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.pop(A), f"lacks .*{Q}.lora_A"),
        (lambda t: t.pop(B), f"lacks .*{Q}.lora_B"),
        (lambda t: t.update({A: t[A][:3]}), "says rank 4 for .*; its A has 3, its B 4"),
        (lambda t: t.update({A: t[A][0]}), "is no matrix of numbers"),
        (lambda t: t.update({A: t[A].to(torch.int8)}), "is no matrix of numbers: I8"),
        (lambda t: t.update({A.replace("lora_A.weight", "lora_magnitude_vector"): t[B][:, 0]}), "DoRA"),
        (lambda t: t.update({"base_model.model.lm_head.weight": t[A]}), "lm_head.weight, which is"),
        (lambda t: t.update({A.replace("lora_A.weight", "lora_B.bias"): t[B][:, 0]}), "adds biases"),
        (lambda t: t.update({"base_model.model.embed.lora_embedding_A": t[A]}), "embeddings"),
        (lambda t: t.clear(), "holds no tensors"),
    ],
)  # fmt: skip
def test_tensors_that_cannot_be_served_are_refused(
    model: Path, tmp_path: Path, change: Callable[[Tensors], Any], words: str
) -> None:
    path = make_adapter(tmp_path / "adapter", model, targets=("q_proj",), change=change)
    with pytest.raises(ModelRefused, match=words):
        read_adapter(path)


def header(given: object) -> bytes:
    raw = json.dumps(given).encode()
    return struct.pack("<Q", len(raw)) + raw


HUGE = {"dtype": "F32", "shape": [4, 10**12], "data_offsets": [0, 16]}
HOSTILE = {
    "a pickle": b"\x80\x04K\x01.",
    "a header of exabytes": struct.pack("<Q", 2**62) + b"{}",
    "cut short": header({A: {"dtype": "F32", "shape": [4, 64], "data_offsets": [0, 1024]}}),
    "a shape that is not there": header({A: HUGE, B: HUGE}) + bytes(16),
    "nested for ever": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "a list": header([A, B]),
    "no tensors": header({A: 5}),
    "offsets of texts": header({A: {"dtype": "F32", "shape": [1], "data_offsets": ["0", "4"]}}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(sound: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "adapter_config.json").symlink_to(sound / "adapter_config.json")
    (tmp_path / "adapter_model.safetensors").write_bytes(HOSTILE[kind])
    with pytest.raises(ModelRefused):
        read_adapter(tmp_path)


def test_what_is_no_adapter_is_refused(sound: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=r"holds no adapter_config\.json"):
        read_adapter(tmp_path)
    for text in ("[]", "{", "[" * 100_000, " " * 2**21):
        (tmp_path / "adapter_config.json").write_text(text)
        with pytest.raises(ModelRefused):
            read_adapter(tmp_path)
    (tmp_path / "adapter_config.json").write_text((sound / "adapter_config.json").read_text())
    (tmp_path / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(ModelRefused, match="Pickled weights"):
        read_adapter(tmp_path)


# --- in a model ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded(model: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model)


def test_an_adapter_of_a_wider_model_is_refused(loaded: Any, tmp_path: Path) -> None:
    wider = make_model(tmp_path / "wider", hidden_size=128, num_hidden_layers=2)
    files = read_adapter(make_adapter(tmp_path / "adapter", wider, targets=("q_proj",)))
    with pytest.raises(
        ModelRefused, match=r"q_proj has 128 inputs and 64 outputs, this model's 64 "
    ):
        places_of(files, loaded)


def test_an_adapter_of_a_deeper_model_is_refused(loaded: Any, tmp_path: Path) -> None:
    deeper = make_model(tmp_path / "deeper", num_hidden_layers=3)
    files = read_adapter(make_adapter(tmp_path / "adapter", deeper, targets=("q_proj",)))
    with pytest.raises(ModelRefused, match=r"has no layer model\.layers\.2\.self_attn\.q_proj"):
        places_of(files, loaded)


def test_an_adapter_without_one_of_its_layers_is_refused(
    loaded: Any, model: Path, tmp_path: Path
) -> None:
    def cut(tensors: Tensors) -> None:
        del tensors[A], tensors[B]

    for name, config in (("whole", {}), ("narrowed", {"layers_to_transform": [1]})):
        path = make_adapter(tmp_path / name, model, targets=("q_proj",), change=cut, **config)
        files = read_adapter(path)
        if config:
            assert set(places_of(files, loaded)) == {"model.layers.1.self_attn.q_proj"}
        else:
            with pytest.raises(ModelRefused, match=f"it has nothing for {Q}"):
                places_of(files, loaded)


@pytest.mark.parametrize("part", ["language_model", "text_model"])
def test_an_adapter_of_a_model_for_pictures_finds_the_text_model(
    loaded: Any, model: Path, tmp_path: Path, part: str
) -> None:
    def renamed(tensors: Tensors) -> None:
        for name in list(tensors):
            tensors[name.replace("model.layers", f"model.{part}.layers")] = tensors.pop(name)

    path = make_adapter(tmp_path / "adapter", model, targets=("q_proj",), change=renamed)
    places = places_of(read_adapter(path), loaded)
    assert {place.module for place in places.values()} == {
        layer.self_attn.q_proj for layer in loaded.model.layers
    }


@pytest.mark.parametrize(
    "eyes",
    [
        "vision_tower.encoder",
        "vision_model.encoder",
        "multi_modal_projector",
        "connector",
        "visual",
    ],
)
def test_an_adapter_that_changes_what_a_model_sees_with_is_told_so(
    loaded: Any, model: Path, tmp_path: Path, eyes: str
) -> None:
    def renamed(tensors: Tensors) -> None:
        for name in list(tensors):
            tensors[name.replace("model.layers", f"model.{eyes}.layers")] = tensors[name]

    path = make_adapter(tmp_path / "adapter", model, targets=("q_proj",), change=renamed)
    with pytest.raises(ModelRefused, match="changes what the model sees with"):
        places_of(read_adapter(path), loaded)


def test_other_layers_than_linear_ones_are_refused(loaded: Any) -> None:
    with pytest.raises(ModelRefused, match="no linear layer"):
        place_of("model.norm", loaded.model.norm)
    with pytest.raises(ModelRefused, match="in front of the logits"):
        place_of("lm_head", loaded.lm_head)


def test_weights_that_are_no_numbers_are_refused(model: Path, tmp_path: Path) -> None:
    def spoil(tensors: Tensors) -> None:
        tensors[B][3, 1] = float("inf")

    files = read_adapter(make_adapter(tmp_path / "adapter", model, change=spoil))
    with pytest.raises(ModelRefused, match=f"weights of {Q} are no numbers"):
        read_pairs(files, torch.float32, torch.device("cpu"))


# --- by configuration ---------------------------------------------------------------------------


def test_adapters_are_named_beside_their_models() -> None:
    assert parse_adapters([]) == ()
    assert parse_adapters(["pirate = org/large + /adapters/c++"]) == (
        Adapter("pirate", "org/large", Path("/adapters/c++")),
    )


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["pirate"], "is not NAME=MODEL"),
        (["pirate=org/large"], "is not NAME=MODEL"),
        (["=org/large+/a"], "is not NAME=MODEL"),
        (["a=+/a"], "is not NAME=MODEL"),
        (["a=a+/a"], "of an adapter and of its model"),
        (["a=b+/a", "a=c+/d"], "of two adapters"),
    ],
)
def test_wrong_entries_have_sentences(entries: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_adapters(entries)
