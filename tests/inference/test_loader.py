"""A checkpoint is served whole or not at all; what real ones carry besides does no harm."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from inference import ModelRefused
from inference.loader import LoadedModel, load_model
from tests.inference.tiny_models import make_model

Tensors = dict[str, Tensor]


def _load(path: Path) -> LoadedModel:
    return load_model("tiny", path, lambda phase, fraction: None, torch.float32)


def _changed(source: Path, target: Path, change: Callable[[Tensors], None]) -> Path:
    """A copy of a model whose tensors were changed."""
    shutil.copytree(source, target)
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    return target


def _without(*words: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        gone = [name for name in tensors if any(word in name for word in words)]
        assert gone
        for name in gone:
            del tensors[name]

    return change


def _with(**extras: Tensor) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.update({n.replace("__", "."): t for n, t in extras.items()})


def _truncate_embeddings(tensors: Tensors) -> None:
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"][:-1].clone()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            _without("layers.1.mlp"),
            r"lack model\.layers\.1\.mlp\.down_proj\.weight and 2 more",
        ),
        (_without("model.norm.weight"), r"lack model\.norm\.weight\."),
        (_without("lm_head"), r"lack lm_head\.weight\."),
        (_truncate_embeddings, r"another shape of model\.embed_tokens\.weight\."),
        (
            _with(model__layers__2__self_attn__q_proj__bias=torch.zeros(64)),
            r"another architecture, whose layers hold model\.layers\.2\.self_attn\.q_proj\.bias\.",
        ),
        # Without its base model's prefix, as some files have it.
        (_with(layers__0__mlp__extra__weight=torch.zeros(2)), "whose layers hold"),
    ],
)
def test_a_checkpoint_that_does_not_fill_the_model_is_refused(
    tiny_model: Path, tmp_path: Path, change: Callable[[Tensors], None], words: str
) -> None:
    with pytest.raises(ModelRefused, match=words):
        _load(_changed(tiny_model, tmp_path / "model", change))


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_truncated_weights_are_refused_wherever_they_end(
    tiny_model: Path, data: st.DataObject
) -> None:
    whole = (tiny_model / "model.safetensors").read_bytes()
    num_bytes = data.draw(st.one_of(st.integers(0, 4096), st.integers(0, len(whole) - 1)))
    with TemporaryDirectory() as folder:
        cut = Path(folder) / "cut"
        shutil.copytree(tiny_model, cut)
        (cut / "model.safetensors").write_bytes(whole[:num_bytes])
        with pytest.raises(ModelRefused, match="no sound safetensors file"):
            _load(cut)


def test_what_real_checkpoints_carry_besides_is_left_alone(
    tiny_model: Path, tmp_path: Path
) -> None:
    extras = _with(
        # frequencies and masks that are computed today
        model__layers__0__self_attn__rotary_emb__inv_freq=torch.zeros(8),
        model__layers__1__self_attn__masked_bias=torch.zeros(1),
        model__layers__1__attn__bias=torch.zeros(4, 4),
        # a layer that predicts several tokens at once, behind this model's three
        model__layers__3__eh_proj__weight=torch.zeros(64, 128),
        model__layers__3__self_attn__q_proj__weight=torch.zeros(64, 64),
        mtp__layers__0__mlp__up_proj__weight=torch.zeros(64, 64),
        visual__blocks__0__attn__qkv__weight=torch.zeros(8, 8),
    )
    loaded = _load(_changed(tiny_model, tmp_path / "model", extras))
    ids = torch.tensor([[5, 6, 7]])
    with torch.inference_mode():
        found = _plain_logits(loaded, ids)
        expected = _plain_logits(_load(tiny_model), ids)
    assert torch.equal(found, expected)


def _plain_logits(loaded: LoadedModel, ids: Tensor) -> Tensor:
    loaded.model.set_attn_implementation("sdpa")  # type: ignore[operator]
    logits: Tensor = loaded.model(input_ids=ids, use_cache=False).logits
    return logits


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("strange", [99_999, -1, "x", 2.0, True, None, {"a": 1}])
def test_only_tokens_of_the_model_end_answers(
    tiny_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, strange: Any
) -> None:
    path = tmp_path / "model"
    shutil.copytree(tiny_model, path)
    named = json.loads((path / file).read_text())
    (path / file).write_text(json.dumps({**named, "eos_token_id": [2, strange]}))
    if file == "config.json" and type(strange) is not int:
        with pytest.raises(ModelRefused, match="eos_token_id"):
            _load(path)
        return
    assert _load(path).eos_ids == {2}
    (warned,) = [m for m in caplog.messages if "which should end answers" in m]
    assert warned.startswith(f"tiny has no tokens {strange!r}, ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_hidden_layers", 10**7),
        ("num_hidden_layers", 1e9),
        ("hidden_size", 10**9),
        ("intermediate_size", 10**12),
        ("vocab_size", 10**10),
        ("text_config", {"num_hidden_layers": 10**7}),
        ("text_config", {"d_model": 10**400}),
    ],
)
def test_a_model_of_any_number_of_layers_is_refused_before_they_are_made(
    tiny_model: Path, tmp_path: Path, name: str, value: Any
) -> None:
    path = tmp_path / "model"
    shutil.copytree(tiny_model, path)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(ModelRefused, match=r"config\.json says .+; at most \d+ are served"):
        _load(path)


def test_a_tied_head_is_not_missing(tmp_path: Path) -> None:
    path = make_model(tmp_path / "tied", tie_word_embeddings=True)
    assert "lm_head.weight" not in load_file(path / "model.safetensors")
    assert _load(path).info.architecture == "qwen3"


def test_the_progress_over_the_weights_is_told(tiny_model: Path) -> None:
    told: list[tuple[str, float]] = []
    load_model("tiny", tiny_model, lambda *news: told.append(news), torch.float32)
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert len([f for phase, f in told if phase == "loading weights" and 0.2 < f <= 0.9]) > 10
