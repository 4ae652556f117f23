"""What a model is made for, told by its files; nothing is loaded."""

import json
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from inference.errors import ModelRefused
from inference.weights import read_config

ModelKind = Literal[
    "chat", "embedding", "classifier", "reranker", "transcription", "speech", "image"
]
KIND_NAMES: dict[ModelKind, str] = {
    "chat": "a chat model",
    "embedding": "an embedding model",
    "classifier": "a classifier",
    "reranker": "a reranker",
    "transcription": "a transcription model",
    "speech": "a speech model",
    "image": "an image model",
}
MODULES_FILE = "modules.json"
"""Of sentence-transformers: what stands behind the transformer."""


def read_kind(path: Path) -> ModelKind:
    """The kind of the model in a directory. Raises ModelRefused for what can never be served."""
    return kind_of(read_config(path), is_pooled=_is_pooled(path))


def kind_of(config: dict[str, Any], *, is_pooled: bool) -> ModelKind:
    """The kind by config.json; `is_pooled`: sentence-transformers pools what this model puts out.

    A causal language model may be either, and pooling decides. Raises ModelRefused.
    """
    listed = config.get("architectures")
    architectures = [str(name) for name in listed] if isinstance(listed, list) else []
    if config.get("auto_map"):
        raise ModelRefused(
            "This model brings its own Python code. Vitrine never runs code from a model's files."
        )
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        return "reranker" if num_labels(config) == 1 else "classifier"
    if is_pooled:
        return "embedding"
    if "WhisperForConditionalGeneration" in architectures:
        return "transcription"
    if not architectures or any(
        "CausalLM" in name or "ConditionalGeneration" in name for name in architectures
    ):
        return "chat"
    if any(name.endswith("Model") for name in architectures):
        return "embedding"
    raise ModelRefused(
        f"{architectures[0]} is no causal language model, which could write answers, and neither"
        " an embedding model nor a classifier of texts."
    )


def num_labels(config: dict[str, Any]) -> int:
    """How many classes a classifier tells apart; two where its config says nothing."""
    labels, count = config.get("id2label"), config.get("num_labels")
    if isinstance(labels, dict) and labels:
        return len(labels)
    return count if isinstance(count, int) and count > 0 else 2


def kind_at(path: Path) -> ModelKind:
    """As read_kind; "chat" where nothing can be told: what is wrong is said when it is loaded.

    Of a model that was deleted, or of which another revision just arrives, what it was.

    A request asks seven times: the disk is looked at once in LOOK_EVERY_S.
    """
    now_s = monotonic()
    looked_s, kind = _looked.get(path, (-LOOK_EVERY_S, "chat"))
    if now_s - looked_s >= LOOK_EVERY_S:
        config_stamp = _stamp(path / "config.json")
        if config_stamp is not None:
            kind = _kind_at(path, config_stamp, _stamp(path / MODULES_FILE))
        _looked[path] = now_s, kind
    return kind


LOOK_EVERY_S = 0.5
# Of the models of a catalogue, which are not many.
_looked: dict[Path, tuple[float, ModelKind]] = {}


@lru_cache(maxsize=1024)
def _kind_at(path: Path, config_stamp: int, modules_stamp: int | None) -> ModelKind:
    try:
        return read_kind(path)
    except ModelRefused:
        return "chat"


def _stamp(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def _is_pooled(path: Path) -> bool:
    try:
        modules = json.loads((path / MODULES_FILE).read_text())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(modules, list) and any(module_type(m) == "Pooling" for m in modules)


def module_type(module: Any) -> str:
    """The class of an entry of modules.json, without the package that it has moved through."""
    kind = module.get("type") if isinstance(module, dict) else None
    return str(kind or "").rpartition(".")[2]
