"""From a model directory to a model that runs over our KV cache, or to a sentence that says why not."""

import logging
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PretrainedConfig
from transformers.utils.logging import set_tqdm_hook

from inference import attention, memory
from inference.context_window import max_context_tokens
from inference.errors import ModelRefused, ModelTooLarge
from inference.messages import ModelInfo
from inference.selftest import check_architecture
from inference.weights import check_servable, read_config, read_weights

logger = logging.getLogger(__name__)
Progress = Callable[[str, float], None]
_OVERHEAD = 1.15  # activations, the tokenizer, the interpreter
_IN_LAYER = re.compile(r"(.+?\.\d+)\.")  # "model.layers.3" of "model.layers.3.mlp.up_proj.weight"
# Buffers that older files hold and newer architectures compute: frequencies and causal masks.
_COMPUTED = re.compile(r"(inv_freq|masked_bias|(attn|attention)\.bias|position_ids)$")


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
    with _tensors_counted(progress):
        model = _from_pretrained(path, config, dtype)
    info = ModelInfo(
        name=name,
        revision=weights.revision,
        architecture=str(config.model_type),
        num_parameters=weights.num_parameters,
        weights_bytes=weights.num_parameters * dtype.itemsize,
        max_context_tokens=_context_tokens(name, config),
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


def _context_tokens(name: str, config: PretrainedConfig) -> int:
    tokens = max_context_tokens(config)
    made_for = getattr(config.get_text_config(), "max_position_embeddings", None) or tokens
    if tokens < made_for:
        logger.warning(
            "%s is served with %d of %d tokens of context: beyond, its RoPE depends on neighbours",
            *(name, tokens, made_for),
        )
    return tokens


@contextmanager
def _tensors_counted(progress: Progress) -> Iterator[None]:
    """Within, transformers' progress bar over a checkpoint's tensors is told as ours, by percents."""

    def counted(tensors: Collection[Any]) -> Iterator[Any]:
        told = 0
        for index, tensor in enumerate(tensors):
            yield tensor
            if (percent := 100 * (index + 1) // len(tensors)) > told:
                told = percent
                progress("loading weights", 0.2 + 0.7 * percent / 100)

    def hook(make_bar: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args and isinstance(args[0], Collection):
            args = (counted(args[0]), *args[1:])
        return make_bar(*args, **kwargs)

    progress("loading weights", 0.2)
    previous = set_tqdm_hook(hook)
    try:
        yield
    finally:
        set_tqdm_hook(previous)


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
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path,
            config=config,
            dtype=dtype,
            attn_implementation=attention.NAME,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they come back in the report, by their names
        )
    except (ValueError, KeyError, OSError, RuntimeError, TypeError) as error:
        raise ModelRefused(f"The weights do not load: {error}") from error
    model: nn.Module
    model, report = loaded
    check_complete(model, report)
    return model.eval()


def check_complete(model: nn.Module, report: dict[str, Any]) -> None:
    """Raise ModelRefused unless the checkpoint held all of a model's tensors, each in its shape.

    transformers fills what is missing with random numbers and drops what it does not know, with a
    line in the log. `report` is its loading info. Tensors that no layer of this model asks for are
    fine: heads for several tokens at once, towers for images.
    """
    mismatched = [name for name, *_ in report["mismatched_keys"]]
    complaints = (
        ("are incomplete, they lack", report["missing_keys"]),
        ("do not fit their config.json, which asks for another shape of", mismatched),
        ("are of another architecture, whose layers hold", _strays(model, report)),
        ("do not load:", report["error_msgs"]),
    )
    for complaint, names in complaints:
        if names:
            first, *others = sorted(names)
            more = f" and {len(others)} more" if others else ""
            raise ModelRefused(f"The weights {complaint} {first}{more}.")


def _strays(model: nn.Module, report: dict[str, Any]) -> list[str]:
    """Unexpected tensors within the layers that this model has."""
    layers = {match[1] for name in model.state_dict() if (match := _IN_LAYER.match(name))}
    # Checkpoints of the bare model name their tensors without this prefix.
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    layers |= {layer.removeprefix(prefix) for layer in layers}
    return [
        name
        for name in report["unexpected_keys"]
        if (match := _IN_LAYER.match(name)) and match[1] in layers and not _COMPUTED.search(name)
    ]


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
