"""How a model's files say that texts become vectors or scores; read without torch or transformers.

Of a model in sentence-transformers' layout: modules.json, 1_Pooling/config.json,
sentence_bert_config.json and config_sentence_transformers.json. Of any other: config.json.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.defaults import read_context_tokens
from inference.errors import ModelRefused
from inference.kinds import MODULES_FILE, ModelKind, kind_of, module_type, num_labels
from inference.weights import odd_values_refused, read_config

MAX_WINDOW_TOKENS = 8192
"""An input is one forward pass; longer ones would hold up everybody else for minutes on a CPU."""

POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
_MODE_OF_FLAG = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_SUPPORTED = ("Transformer", "Pooling", "Dense", "Normalize")
# Their positions begin behind the padding token's id, which takes that many from the table.
_OFFSET_POSITIONS = (
    *("camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta"),
    *("roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
)


@dataclass(frozen=True, slots=True)
class EncoderLayout:
    """What has to be known of an embedding model, a classifier or a reranker beside its weights.

    `window_tokens` is the longest input, special tokens included. `prompts` stand in front of texts,
    by name. `pooling` modes are joined to one vector; empty where the files say nothing. `dense` are
    directories of layers behind the pooling. `dimensions` is the length of a vector, and those of
    `shorter` are what it may be cut to (None: any). `labels` are a classifier's; of
    `is_multi_label`, several may be true of a text.
    """

    kind: ModelKind
    window_tokens: int
    vocab_size: int
    dimensions: int
    shorter: frozenset[int] | None
    prompts: dict[str, str]
    default_prompt: str | None
    is_lowercased: bool
    pooling: tuple[str, ...]
    dense: tuple[Path, ...]
    is_normalized: bool
    labels: tuple[str, ...]
    is_multi_label: bool


def read_encoder_layout(path: Path) -> EncoderLayout:
    """Read a model directory. Raises ModelRefused for what it cannot be served as it is meant."""
    with odd_values_refused(path):
        return _read(path)


def _read(path: Path) -> EncoderLayout:
    config = read_config(path)
    modules = _modules(path)
    kinds = [module_type(module) for module in modules]
    kind = kind_of(config, is_pooled="Pooling" in kinds)
    if kind != "embedding":
        modules, kinds = [], []
    _check_modules(modules, kinds)
    pooling = _pooling(_of_type(path, modules, "Pooling"))
    dense = tuple(_of_type(path, modules, "Dense"))
    sentences = read_json_object(path / "sentence_bert_config.json")
    prompts = read_json_object(path / "config_sentence_transformers.json")
    return EncoderLayout(
        kind=kind,
        window_tokens=_window_tokens(path, config, sentences),
        vocab_size=int(_text_value(config, "vocab_size") or 0),
        dimensions=_dimensions(config, pooling, dense),
        shorter=_shorter(config),
        prompts={str(k): str(v) for k, v in (prompts.get("prompts") or {}).items()},
        default_prompt=prompts.get("default_prompt_name"),
        is_lowercased=bool(sentences.get("do_lower_case")),
        pooling=pooling,
        dense=dense,
        is_normalized="Normalize" in kinds,
        labels=_labels(config),
        is_multi_label=config.get("problem_type") == "multi_label_classification",
    )


def _modules(path: Path) -> list[Any]:
    modules = _json(path / MODULES_FILE, [])
    if not isinstance(modules, list):
        raise ModelRefused(f"{MODULES_FILE} is no JSON list.")
    return modules


def _check_modules(modules: list[Any], kinds: list[str]) -> None:
    for kind in kinds:
        if kind not in _SUPPORTED:
            raise ModelRefused(f"{MODULES_FILE} asks for a module {kind}, which is not supported.")
    order = [_SUPPORTED.index(kind) for kind in kinds]
    if order != sorted(order) or kinds.count("Pooling") > 1:
        raise ModelRefused(f"{MODULES_FILE} joins modules in an order that is not supported.")
    if modules and modules[0].get("path"):
        raise ModelRefused(f"{MODULES_FILE} keeps the transformer in a directory of its own.")


def _of_type(path: Path, modules: list[Any], kind: str) -> list[Path]:
    """The directories of the modules of a type, each within the model's."""
    found = [path / str(m.get("path")) for m in modules if module_type(m) == kind]
    for directory in found:
        if directory.resolve().parent != path.resolve():
            raise ModelRefused(f"{MODULES_FILE} points to {directory}, outside of the model.")
    return found


def _pooling(directories: list[Path]) -> tuple[str, ...]:
    if not directories:
        return ()
    config = read_json_object(directories[0] / "config.json")
    modes = config.get("pooling_mode") or [m for k, m in _MODE_OF_FLAG.items() if config.get(k)]
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or any(mode not in POOLING_MODES for mode in modes):
        raise ModelRefused(f"Its pooling {list(modes)} is not supported.")
    if config.get("include_prompt") is False:
        raise ModelRefused("It leaves its prompts out of the pooling, which is not supported.")
    return modes


def _window_tokens(path: Path, config: dict[str, Any], sentences: dict[str, Any]) -> int:
    """The least of all that the files name: a table of positions ends, whatever they hope for."""
    positions = read_context_tokens(path)
    if config.get("model_type") in _OFFSET_POSITIONS:
        positions -= int(config.get("pad_token_id") or 0) + 1
    tokenizer = read_json_object(path / "tokenizer_config.json")
    named = (sentences.get("max_seq_length"), tokenizer.get("model_max_length"))
    return min(MAX_WINDOW_TOKENS, positions, *(int(n) for n in named if n))


def _dimensions(config: dict[str, Any], pooling: tuple[str, ...], dense: tuple[Path, ...]) -> int:
    if dense:
        return int(read_json_object(dense[-1] / "config.json").get("out_features") or 0)
    names = ("hidden_size", "d_model", "dim", "n_embd")
    hidden = next((int(size) for name in names if (size := _text_value(config, name))), 0)
    return hidden * max(1, len(pooling))


def _shorter(config: dict[str, Any]) -> frozenset[int] | None:
    """Only models that were trained so may be cut, and say it in vLLM's words."""
    named = config.get("matryoshka_dimensions")
    if named:
        return frozenset(map(int, named))
    return None if config.get("is_matryoshka") else frozenset()


def _labels(config: dict[str, Any]) -> tuple[str, ...]:
    names = config.get("id2label") or {}
    return tuple(str(names.get(str(i), f"LABEL_{i}")) for i in range(num_labels(config)))


def _text_value(config: dict[str, Any], name: str) -> Any:
    return (config.get("text_config") or config).get(name) or config.get(name)


def read_json_object(file: Path) -> dict[str, Any]:
    """A JSON object of a model's files; empty where there is no such file. Raises ModelRefused."""
    value = _json(file, {})
    if not isinstance(value, dict):
        raise ModelRefused(f"{file.name} is no JSON object.")
    return value


def _json(file: Path, missing: Any) -> Any:
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return missing
    except (OSError, ValueError, RecursionError) as error:
        raise ModelRefused(f"{file.name} cannot be read: {error}") from error
