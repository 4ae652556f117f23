"""adapter_config.json of a LoRA adapter in PEFT's format: its ranks and scales, and what is not served.

A layer's scale is alpha / rank (Hu et al. 2021, "LoRA", section 4.1), or alpha / sqrt(rank) where the
config says so (Kalajdzievski 2023, "A Rank Stabilization Scaling Factor for Fine-Tuning with LoRA").
Source of the fields: https://huggingface.co/docs/peft/package_reference/lora. No torch.
"""

import json
from dataclasses import dataclass
from math import isfinite, sqrt
from pathlib import Path
from typing import Any

import re2

from inference.errors import ModelRefused

CONFIG_FILE = "adapter_config.json"
_MAX_CONFIG_BYTES = 2**20
_MAX_RANK = 65_536  # far beyond any layer's width
# How A and B began, where the base's own weights stayed what they were.
_PLAIN_STARTS = (True, False, "gaussian", "eva", "orthogonal")
# What PEFT's configs may ask for beside plain LoRA, as sentences go on behind "The adapter".
_UNSERVED = {
    "use_dora": "is one of DoRA, which scales the base's weights as well",
    "use_qalora": "is one of QA-LoRA, whose A reads groups of inputs",
    "use_bdlora": "has matrices of blocks (BD-LoRA)",
    "lora_bias": "adds biases",
    "modules_to_save": "brings whole layers of its own (modules_to_save)",
    "trainable_token_indices": "has trained embeddings of its own (trainable_token_indices)",
    "target_parameters": "changes weights that are no linear layers (target_parameters)",
    "layer_replication": "uses layers of the base several times (layer_replication)",
    "alora_invocation_tokens": "begins in the middle of a prompt (activated LoRA)",
    "arrow_config": "is a router among other adapters (Arrow)",
    "kasa_config": "changes the base's weights as well (KaSA)",
    "monteclora_config": "draws its weights (MonteCLoRA)",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The ranks and alphas of adapter_config.json, some of them by patterns of layers' paths."""

    rank: int
    alpha: float
    is_stabilized: bool
    ranks: dict[str, int]
    alphas: dict[str, float]

    def of(self, layer: str) -> tuple[int, float]:
        """The rank and the scale of a layer."""
        rank = _of_pattern(self.ranks, layer, self.rank)
        alpha = _of_pattern(self.alphas, layer, self.alpha)
        return rank, alpha / (sqrt(rank) if self.is_stabilized else rank)


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """`targets` are the ends of the paths of all layers that are changed: empty where only the weights
    tell. `source` is the whole of it."""

    sizes: Sizes
    targets: tuple[str, ...]
    source: str


def read_adapter_config(path: Path) -> AdapterConfig:
    """Of an adapter's directory. Raises ModelRefused with a sentence, also for what is no plain LoRA."""
    config = _read_json(path)
    _check_kind(config)
    source = json.dumps(config, sort_keys=True)
    return AdapterConfig(_read_sizes(config), _read_targets(config), source)


def read_base_name(path: Path) -> str:
    """What the adapter calls its base; empty where it says nothing. Raises ModelRefused."""
    name = _read_json(path).get("base_model_name_or_path")
    return name if isinstance(name, str) and name.isprintable() else ""


def _read_json(path: Path) -> dict[str, Any]:
    file = path / CONFIG_FILE
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_CONFIG_BYTES + 1)
        if len(text) > _MAX_CONFIG_BYTES:
            raise ValueError("it is longer than a megabyte")
        config = json.loads(text)
    except FileNotFoundError:
        raise ModelRefused(f"{path} holds no {CONFIG_FILE}, so it is no adapter.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelRefused(f"{file} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise ModelRefused(f"{file} is no JSON object.")
    return config


def _check_kind(config: dict[str, Any]) -> None:
    """Raise ModelRefused for what is not LoRA, and for kinds of it that would be served wrong."""
    if (kind := config.get("peft_type")) != "LORA":
        raise ModelRefused(f"The adapter is of PEFT's kind {kind!r}; Vitrine serves LORA.")
    for name, problem in _UNSERVED.items():
        if config.get(name):
            raise ModelRefused(f"The adapter {problem}. Vitrine serves plain LoRA.")
    if config.get("bias") not in (None, "none"):
        raise ModelRefused("The adapter changes biases of the base. Vitrine serves plain LoRA.")
    start = config.get("init_lora_weights", True)
    if start not in _PLAIN_STARTS:
        raise ModelRefused(
            f"The adapter began as {start!r}, which changes the base's weights as well. PEFT makes a"
            " plain one of it: save_pretrained(…, path_initial_model_for_weight_conversion=…)."
        )


def _read_sizes(config: dict[str, Any]) -> Sizes:
    try:
        ranks = {str(k): int(v) for k, v in (config.get("rank_pattern") or {}).items()}
        alphas = {str(k): float(v) for k, v in (config.get("alpha_pattern") or {}).items()}
        sizes = Sizes(
            rank=int(config["r"]),
            alpha=float(config["lora_alpha"]),
            is_stabilized=bool(config.get("use_rslora")),
            ranks=ranks,
            alphas=alphas,
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelRefused(
            f"The adapter's r, lora_alpha or their patterns are no numbers: {error}"
        ) from error
    if not all(1 <= rank <= _MAX_RANK for rank in (sizes.rank, *ranks.values())):
        raise ModelRefused(f"The adapter has a rank that is not from 1 to {_MAX_RANK}.")
    if not all(map(isfinite, (sizes.alpha, *alphas.values()))):
        raise ModelRefused("The adapter's lora_alpha is no number.")
    return sizes


def _of_pattern(values: dict[str, Any], layer: str, default: Any) -> Any:
    """As PEFT's get_pattern_key: the first pattern that the end of the path matches.

    By re2, since a pattern that is made for it keeps Python's own busy for ever.
    """
    for pattern, value in values.items():
        try:
            is_match = re2.fullmatch(rf"(.*\.)?({pattern})", layer)
        except re2.error as error:
            raise ModelRefused(f"The adapter's pattern {pattern!r} is none: {error}") from error
        if is_match:
            return value
    return default


def _read_targets(config: dict[str, Any]) -> tuple[str, ...]:
    targets = config.get("target_modules")
    narrowing = ("layers_to_transform", "exclude_modules")
    if not isinstance(targets, list) or any(config.get(name) for name in narrowing):
        return ()
    return tuple(map(str, targets))
