"""From a model directory to a model that runs over our KV cache, or to a sentence that says why not."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PretrainedConfig

from inference import attention, memory
from inference.errors import ModelRefused, ModelTooLarge
from inference.messages import ModelInfo
from inference.selftest import check_architecture
from inference.weights import check_servable, read_config, read_weights

Progress = Callable[[str, float], None]
_OVERHEAD = 1.15  # activations, the tokenizer, the interpreter


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run. `eos_ids` end an answer; `kv_bytes_per_token` sizes the cache."""

    model: nn.Module
    config: PretrainedConfig
    info: ModelInfo
    eos_ids: frozenset[int]
    kv_bytes_per_token: int


def load_model(name: str, path: Path, progress: Progress, dtype: torch.dtype) -> LoadedModel:
    """Load safetensors weights from a local directory, after every check that can be made before.

    Raises ModelRefused (files, architecture, self-test) or ModelTooLarge. Never runs code from the
    model's directory and never opens pickled weights.
    """
    progress("reading files", 0.0)
    check_servable(read_config(path))
    weights = read_weights(path)
    needed = int(weights.num_parameters * dtype.itemsize * _OVERHEAD)
    available = memory.available_bytes()
    if needed > available:
        raise ModelTooLarge(name, needed_bytes=needed, available_bytes=available)
    config = _read_model_config(path)
    progress("checking the architecture", 0.1)
    check_architecture(config)
    progress("loading weights", 0.2)
    model = _from_pretrained(path, config, dtype)
    info = ModelInfo(
        name=name,
        revision=weights.revision,
        architecture=str(config.model_type),
        num_parameters=weights.num_parameters,
        weights_bytes=weights.num_parameters * dtype.itemsize,
        max_context_tokens=max_context_tokens(config),
        dtype=str(dtype).removeprefix("torch."),
        device="cpu",
    )
    return LoadedModel(
        model, config, info, _eos_ids(path, config), _kv_bytes_per_token(config, dtype)
    )


def best_dtype() -> torch.dtype:
    """bfloat16 where the processor multiplies it in hardware, else float32."""
    capabilities = torch.cpu.get_capabilities()
    native = capabilities.get("avx512_bf16") or capabilities.get("amx_bf16")
    return torch.bfloat16 if native else torch.float32


def max_context_tokens(config: PretrainedConfig) -> int:
    text_config = config.get_text_config()
    return int(getattr(text_config, "max_position_embeddings", None) or 2048)


def _read_model_config(path: Path) -> PretrainedConfig:
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(
            path, local_files_only=True, trust_remote_code=False
        )
    except (ValueError, KeyError, OSError, TypeError) as error:
        raise ModelRefused(f"transformers does not know this architecture: {error}") from error
    return config


def _from_pretrained(path: Path, config: PretrainedConfig, dtype: torch.dtype) -> nn.Module:
    try:
        model: nn.Module = AutoModelForCausalLM.from_pretrained(
            path,
            config=config,
            dtype=dtype,
            attn_implementation=attention.NAME,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    except (ValueError, KeyError, OSError, RuntimeError, TypeError) as error:
        raise ModelRefused(f"The weights do not load: {error}") from error
    return model.eval()


def _eos_ids(path: Path, config: PretrainedConfig) -> frozenset[int]:
    """Every id that ends an answer: generation_config.json knows lists that config.json does not."""
    ids: set[int] = set()
    sources: list[Any] = [config, config.get_text_config()]
    if (path / "generation_config.json").exists():
        sources.append(GenerationConfig.from_pretrained(path, local_files_only=True))
    for source in sources:
        eos = getattr(source, "eos_token_id", None)
        ids.update([eos] if isinstance(eos, int) else eos or [])
    return frozenset(ids)


def _kv_bytes_per_token(config: PretrainedConfig, dtype: torch.dtype) -> int:
    text = config.get_text_config()
    num_heads = text.num_attention_heads
    num_kv_heads = getattr(text, "num_key_value_heads", None) or num_heads
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // num_heads
    return int(2 * text.num_hidden_layers * num_kv_heads * head_dim * dtype.itemsize)
