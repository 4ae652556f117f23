"""What a model is made for, and how its files say that it is used."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from inference import ModelRefused
from inference.encoder_layout import MAX_WINDOW_TOKENS, EncoderLayout, read_encoder_layout
from inference.kinds import LOOK_EVERY_S, kind_at, read_kind

_OF = "sentence_transformers.models"
POOLED = [
    {"type": f"{_OF}.Transformer", "path": ""},
    {"type": f"{_OF}.Pooling", "path": "1_Pooling"},
]


def _model(path: Path, files: dict[str, Any] | None = None, **config: Any) -> Path:
    """A directory with files by name; config.json of keyword arguments."""
    settings = {"architectures": ["BertModel"], "hidden_size": 64, "vocab_size": 300, **config}
    pooling = {"pooling_mode_mean_tokens": True}
    every = {"config.json": settings, "1_Pooling/config.json": pooling, **(files or {})}
    for name, content in every.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def _layout(path: Path, files: dict[str, Any] | None = None, **config: Any) -> EncoderLayout:
    return read_encoder_layout(_model(path, files, **config))


@pytest.mark.parametrize(
    ("config", "files", "kind"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, {}, "chat"),
        ({"architectures": ["Gemma3ForConditionalGeneration"]}, {}, "chat"),
        ({"architectures": []}, {}, "chat"),
        ({"architectures": ["BertModel"]}, {}, "embedding"),
        ({"architectures": ["Qwen3ForCausalLM"]}, {"modules.json": POOLED}, "embedding"),
        ({"architectures": ["MPNetForMaskedLM"]}, {"modules.json": POOLED}, "embedding"),
        ({"architectures": ["Qwen3ForCausalLM"]}, {"modules.json": [{"type": "x.Logit"}]}, "chat"),
        ({"architectures": ["Qwen3ForCausalLM"]}, {"modules.json": "no JSON"}, "chat"),
        ({"architectures": ["BertForSequenceClassification"]}, {}, "classifier"),
        (
            {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}},
            {"modules.json": POOLED},
            "reranker",
        ),
        ({"architectures": ["BertForSequenceClassification"], "num_labels": 1}, {}, "reranker"),
    ],
)
def test_files_tell_the_kind(
    config: dict[str, Any], files: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    path = _model(tmp_path, files, **config)
    assert read_kind(path) == kind
    assert kind_at(path) == kind


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BertForTokenClassification", "CLIPVision"])
def test_what_is_none_of_them_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=f"{name} is no causal language model"):
        read_kind(_model(tmp_path, architectures=[name]))


def test_the_kind_follows_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = count(100.0, LOOK_EVERY_S)
    monkeypatch.setattr("inference.kinds.monotonic", lambda: next(now_s))
    assert kind_at(tmp_path / "absent") == "chat"
    path = _model(tmp_path, architectures=["Qwen3ForCausalLM"])
    assert kind_at(path) == "chat"
    (path / "modules.json").write_text(json.dumps(POOLED))
    assert kind_at(path) == "embedding"
    (path / "modules.json").unlink()
    (path / "config.json").unlink()
    assert kind_at(path) == "embedding", "as long as it is not another one"


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, ("mean",)),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, ("cls", "max")),
        ({"pooling_mode": "lasttoken"}, ("lasttoken",)),
        ({"pooling_mode": ["mean", "max"]}, ("mean", "max")),
    ],
)
def test_both_forms_of_a_pooling_are_read(
    config: dict[str, Any], pooling: tuple[str, ...], tmp_path: Path
) -> None:
    layout = _layout(tmp_path, {"modules.json": POOLED, "1_Pooling/config.json": config})
    assert layout.pooling == pooling
    assert layout.dimensions == 64 * len(pooling)


@pytest.mark.parametrize(
    ("config", "files", "window_tokens"),
    [
        ({"max_position_embeddings": 512}, {}, 512),
        ({"max_position_embeddings": 512}, {"sentence_bert_config.json": {}}, 512),
        (
            {"max_position_embeddings": 512},
            {"sentence_bert_config.json": {"max_seq_length": 256}},
            256,
        ),
        (
            {"max_position_embeddings": 512},
            {"sentence_bert_config.json": {"max_seq_length": 4096}},
            512,
        ),
        (
            {"max_position_embeddings": 512},
            {"tokenizer_config.json": {"model_max_length": 128}},
            128,
        ),
        # transformers writes 1e30 where it knows nothing
        (
            {"max_position_embeddings": 512},
            {"tokenizer_config.json": {"model_max_length": 10**30}},
            512,
        ),
        (
            {"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1},
            {},
            512,
        ),
        ({"max_position_embeddings": 131_072}, {}, MAX_WINDOW_TOKENS),
    ],
)
def test_the_window_is_the_least_that_is_named(
    config: dict[str, Any], files: dict[str, Any], window_tokens: int, tmp_path: Path
) -> None:
    assert _layout(tmp_path, files, **config).window_tokens == window_tokens


def test_prompts_and_labels_are_read(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    layout = _layout(tmp_path, {"config_sentence_transformers.json": prompts})
    assert layout.prompts == {"query": "query: "}
    assert layout.default_prompt == "query"
    labels = {"0": "SAFE", "1": "INJECTION"}
    classifier = _layout(tmp_path, architectures=["BertForSequenceClassification"], id2label=labels)
    assert classifier.labels == ("SAFE", "INJECTION")


@pytest.mark.parametrize(
    ("config", "shorter"),
    [
        ({}, frozenset()),
        ({"is_matryoshka": True}, None),
        ({"matryoshka_dimensions": [16, 32]}, frozenset({16, 32})),
    ],
)
def test_only_a_model_that_says_so_may_be_cut(
    config: dict[str, Any], shorter: frozenset[int] | None, tmp_path: Path
) -> None:
    assert _layout(tmp_path, **config).shorter == shorter


def _with_module(kind: str, path: str, index: int = 2) -> Callable[[], list[dict[str, str]]]:
    def modules() -> list[dict[str, str]]:
        module = {"type": f"sentence_transformers.models.{kind}", "path": path}
        return [*POOLED[:index], module, *POOLED[index:]]

    return modules


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        (_with_module("LSTM", "2_LSTM"), "module LSTM, which is not supported"),
        (_with_module("Dense", "1_Dense", index=1), "in an order"),
        (_with_module("Pooling", "2_Pooling"), "in an order"),
        (_with_module("Dense", "../../outside"), "outside of the model"),
        (_with_module("Dense", "/etc"), "outside of the model"),
        (lambda: [{**POOLED[0], "path": "0_BERT"}, POOLED[1]], "in a directory of its own"),
    ],
)
def test_modules_that_would_be_silently_wrong_are_refused(
    modules: Callable[[], Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelRefused, match=words):
        _layout(tmp_path, {"modules.json": modules()})


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"1_Pooling/config.json": {}}, r"pooling \[\] is not supported"),
        ({"1_Pooling/config.json": {"pooling_mode": "attention"}}, "attention.* not supported"),
        ({"1_Pooling/config.json": "[]"}, "no JSON object"),
        ({"1_Pooling/config.json": "{"}, "cannot be read"),
        ({"sentence_bert_config.json": "\0"}, "cannot be read"),
        (
            {"1_Pooling/config.json": {"pooling_mode": "mean", "include_prompt": False}},
            "prompts out of the pooling",
        ),
    ],
)
def test_files_that_cannot_be_followed_are_refused(
    files: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelRefused, match=words):
        _layout(tmp_path, {"modules.json": POOLED, **files})
