"""Small random LoRA adapters in PEFT's format, and the same models with an adapter in their weights."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
Tensors = dict[str, Tensor]


def make_adapter(
    path: Path,
    model: Path,
    *,
    targets: tuple[str, ...] = ALL,
    seed: int = 1,
    rank: int = 4,
    change: Callable[[Tensors], Any] = lambda tensors: None,
    **config: Any,
) -> Path:
    """Write an adapter for the layers of a model whose paths end so; `change` may spoil its tensors.

    What it adds to a layer is about half of that layer's own weights of `tiny_models`.
    """
    settings = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": list(targets),
        "bias": "none",
        **config,
    }
    generator = torch.Generator().manual_seed(seed)
    tensors: Tensors = {}
    for layer, (num_outputs, num_inputs) in _layers(model, targets).items():
        own = _of_pattern(settings.get("rank_pattern") or {}, layer, rank)
        name = f"base_model.model.{layer}"
        a = torch.randn(own, num_inputs, generator=generator)
        b = torch.randn(num_outputs, own, generator=generator)
        tensors[f"{name}.lora_A.weight"] = a * 0.1
        tensors[f"{name}.lora_B.weight"] = b * 0.1
    change(tensors)
    path.mkdir(parents=True)
    (path / "adapter_config.json").write_text(json.dumps(settings))
    apart = {name: tensor.clone() for name, tensor in tensors.items()}
    save_file(apart, path / "adapter_model.safetensors")
    return path


def merged(path: Path, model: Path, adapter: Path) -> Path:
    """Write a model with an adapter in its weights: W + scale · B · A, by the definition."""
    shutil.copytree(model, path)
    settings = json.loads((adapter / "adapter_config.json").read_text())
    is_gpt2 = json.loads((model / "config.json").read_text())["model_type"] == "gpt2"
    low = load_file(adapter / "adapter_model.safetensors")
    weights = load_file(model / "model.safetensors")
    for name in [name for name in low if ".lora_A." in name]:
        layer = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        a, b = low[name].double(), low[name.replace("lora_A", "lora_B")].double()
        rank = _of_pattern(settings.get("rank_pattern") or {}, layer, settings["r"])
        alpha = _of_pattern(settings.get("alpha_pattern") or {}, layer, settings["lora_alpha"])
        scale = alpha / (rank**0.5 if settings.get("use_rslora") else rank)
        key = next(key for key in weights if key.endswith(f"{layer}.weight"))
        added = scale * (b @ a).to(weights[key].dtype)
        weights[key] += added.T if is_gpt2 else added  # whose weights are (inputs, outputs)
    save_file(weights, path / "model.safetensors", {"format": "pt"})
    return path


def _layers(model: Path, targets: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """The (outputs, inputs) of a model's linear layers whose paths end so."""
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.pytorch_utils import Conv1D

    found = {}
    auto_class: Any = AutoModel if (model / "modules.json").exists() else AutoModelForCausalLM
    if "vision_config" in json.loads((model / "config.json").read_text()):
        auto_class = AutoModelForImageTextToText
    whole = auto_class.from_pretrained(model)
    for name, module in whole.named_modules():
        if name.endswith(targets):
            shape = tuple(module.weight.shape)
            found[name] = shape[::-1] if isinstance(module, Conv1D) else shape
    assert found
    return found


def _of_pattern(values: dict[str, Any], layer: str, default: Any) -> Any:
    matching = (v for key, v in values.items() if re.fullmatch(rf"(.*\.)?({key})", layer))
    return next(matching, default)
