"""From a model directory to a model that runs over our KV cache, or to a sentence that says why not."""

import logging
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from tokenizers import Tokenizer
from torch import nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PretrainedConfig,
)
from transformers.utils.logging import set_tqdm_hook
from transformers.utils.quantization_config import Mxfp4Config

from inference import attention, int8, memory
from inference.context_window import max_context_tokens
from inference.defaults import read_generation_config
from inference.dequantize import dequantized
from inference.device import CPU, check_kernels, choose_kernels, fits_on, free_bytes
from inference.errors import ModelRefused, ModelTooLarge
from inference.experts import set_experts_implementation
from inference.few_bits import Kind, quantize_for
from inference.footprint import Footprint, measure_footprint
from inference.fusing import fuse
from inference.gpu.fusing import fuse_checked
from inference.int8_linear import weights_bytes
from inference.kinds import read_kind
from inference.messages import ModelInfo
from inference.needs import WEIGHTS_OVERHEAD
from inference.quantized import Quantization
from inference.ranks import split_over
from inference.ranks_selftest import check_ranks
from inference.selftest import check_architecture
from inference.slot_states import has_states
from inference.vision.eyes import Eyes
from inference.vision.layout import VisionLayout, read_layout, served_families
from inference.vision.loading import parted
from inference.vision.reading import reading_config
from inference.vision.selftest import check_seeing
from inference.weights import Weights, read_config, read_weights

logger = logging.getLogger(__name__)
Progress = Callable[[str, float], None]
_IN_LAYER = re.compile(r"(.+?\.\d+)\.")  # "model.layers.3" of "model.layers.3.mlp.up_proj.weight"
# Buffers that older files hold and newer architectures compute: frequencies and causal masks.
_COMPUTED = re.compile(r"(inv_freq|masked_bias|(attn|attention)\.bias|position_ids)$")
# Far above what the largest models have, under all names of it.
_LAYERS = (
    *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "layers", "depth"),
    *("encoder_layers", "decoder_layers"),
)
_WIDTHS = ("hidden_size", "d_model", "n_embd", "hidden_dim", "embed_dim", "emb_dim", "dim")
_MOST = {
    **dict.fromkeys(_LAYERS, 2_048),
    **dict.fromkeys(_WIDTHS, 2**17),
    **{"intermediate_size": 2**20, "vocab_size": 2**22, "num_attention_heads": 2**12},
}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run. `eos_ids` end an answer; `footprint` sizes the cache.

    One that sees is the part of it that reads tokens, with the config of that, and its `eyes`.
    """

    model: nn.Module
    config: PretrainedConfig
    info: ModelInfo
    eos_ids: frozenset[int]
    footprint: Footprint
    eyes: Eyes | None = None


def load_model(
    name: str,
    path: Path,
    progress: Progress,
    dtype: torch.dtype,
    *,
    bits: int | None = None,
    is_fp8: bool = False,
    kept_as: torch.dtype | None = None,
    num_ranks: int = 1,
    device: torch.device = CPU,
    is_fused: bool = True,
) -> LoadedModel:
    """Load safetensors weights from a local directory, after every check that can be made before.

    `bits` (8 or 4) are those of the linear layers' weights, with `is_fp8` 8 of floating point, where the
    device can (`few_bits`, `int8`); `dtype` is all else's, but for keys and values, which `kept_as` may
    say. `device` is where it computes, and `is_fused` whether small launches are joined
    there. With `num_ranks` this process loads its part, while the other ranks load theirs.
    Raises ModelRefused (files, architecture, self-test) or ModelTooLarge. Never runs code from the
    model's directory and never opens pickled weights.
    """
    progress("reading files", 0.0)
    read_kind(path)  # refuses what can never be served
    weights = read_weights(path)
    check_memory(name, weights, dtype)
    config = read_model_config(path)
    progress("checking the architecture", 0.1)
    layout = read_layout(path)
    if layout is None and hasattr(config, "vision_config"):
        _check_reads_alone(config)
    reading = reading_config(config)
    check_architecture(reading)
    if layout is not None:
        _check_seeing(name, path, config, layout, num_ranks)
    if num_ranks > 1:
        check_ranks(config, num_ranks)
        if bits or is_fp8:
            logger.warning("%s is split over %d processes, and not quantized", name, num_ranks)
            bits, is_fp8 = None, False
    device = fits_on(device, name, config)
    if device.type != "cpu":
        choose_kernels(name, reading, device)
    how: dict[str, Any] = {**split_over(num_ranks)}
    if weights.quantization is not None:
        progress("dequantizing", 0.15)
        how |= _as_ordinary(name, path, config, weights.quantization, dtype)
    if layout is None:
        how["attn_implementation"] = attention.NAME
    auto_class = AutoModelForCausalLM if layout is None else AutoModelForImageTextToText
    with tensors_counted(progress):
        model, report = from_pretrained(auto_class, path, config, dtype=dtype, **how)
    check_complete(model, report)
    eos_ids, architecture, eyes = _eos_ids(name, path, config), str(config.model_type), None
    if layout is not None:
        model, eyes = parted(model, layout, path)
        config = reading.get_text_config()
    set_experts_implementation(model)
    dtype_name = str(dtype).removeprefix("torch.")
    if bits and device.type == "cpu":
        if bits := quantize(name, model, bits, progress):
            dtype_name = f"int{bits}"
    elif bits or is_fp8:
        progress("quantizing", 0.88)
        asked: Kind = "fp8" if is_fp8 else "int4" if bits == 4 else "int8"
        dtype_name = quantize_for(name, model, asked, device) or dtype_name
    if weights.quantization is not None:
        dtype_name += f" (from {weights.quantization})"
    if device.type == "cpu":
        fuse(model)
    else:
        parts = nn.ModuleList([model, eyes.module] if eyes is not None else [model])
        check_device_memory(name, parts, device)
        model.to(device)
        if eyes is not None:
            eyes.module.to(device)
        if is_fused and num_ranks == 1:
            fuse_checked(name, model, config, kept_as)
        check_kernels(name, model, config, kept_as)
    info = ModelInfo(
        name=name,
        revision=weights.revision,
        architecture=architecture,
        num_parameters=weights.num_parameters,
        weights_bytes=weights_bytes(model) + (weights_bytes(eyes.module) if eyes else 0),
        max_context_tokens=_context_tokens(name, config),
        dtype=dtype_name,
        device=device.type,
    )
    footprint = measure_footprint(model, config, kept_as)
    return LoadedModel(model, config, info, eos_ids, footprint, eyes)


def _check_reads_alone(config: PretrainedConfig) -> None:
    """Raise ModelRefused for a model that transformers has as one that sees only."""
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ModelRefused(
            f"The architecture '{config.model_type}' sees, in a way that is not served. Of such models"
            f" these are: {served_families()}."
        )


def _check_seeing(
    name: str, path: Path, config: PretrainedConfig, layout: VisionLayout, num_ranks: int
) -> None:
    """Raise ModelRefused for a model that sees and cannot be served so."""
    if num_ranks > 1:
        raise ModelRefused(f"{name} sees images, and such a model is not split over processes.")
    if has_states(config):
        raise ModelRefused(f"{name} sees images and keeps states, which is not served together.")
    check_seeing(config, path, layout)


def _as_ordinary(
    name: str,
    path: Path,
    config: PretrainedConfig,
    quantization: Quantization,
    dtype: torch.dtype,
) -> dict[str, Any]:
    """What `from_pretrained` is told, so that it loads ordinary weights; changes the config."""
    logger.warning("%s: its weights of %s become %s", name, quantization, dtype)
    if quantization.method == "mxfp4":
        return {"quantization_config": Mxfp4Config(dequantize=True)}
    for one in (config, config.get_text_config()):
        if hasattr(one, "quantization_config"):
            del one.quantization_config
    return {"state_dict": dequantized(path, quantization, dtype)}


def quantize(name: str, model: nn.Module, bits: int, progress: Progress) -> int | None:
    """For the processor. Returns the bits that the weights have got: more than asked for where there is
    nothing smaller, and None where there are no sound products of whole numbers at all."""
    while int8.sound_kind(bits) is None:
        logger.warning("%s: this machine has no sound products of int%d", name, bits)
        if bits == 8:
            return None
        bits = 8
    progress("quantizing", 0.88)
    int8.quantize(model, bits)
    return bits


def check_memory(name: str, weights: Weights, dtype: torch.dtype) -> None:
    """Raise ModelTooLarge unless the weights fit into the memory that is free."""
    needed = int(weights.num_parameters * dtype.itemsize * WEIGHTS_OVERHEAD)
    available = memory.available_bytes()
    if needed > available:
        raise ModelTooLarge(name, needed_bytes=needed, available_bytes=available)


def check_device_memory(name: str, model: nn.Module, device: torch.device) -> None:
    """Raise ModelTooLarge unless a model fits into a device. A part of a split one is there already."""
    if next(model.parameters()).device.type == device.type:
        return
    needed, available = weights_bytes(model), free_bytes(device)
    if needed > available:
        raise ModelTooLarge(name, needed_bytes=needed, available_bytes=available, on_gpu=True)


def bits_of(dtype: str) -> int | None:
    """Of the linear layers' weights, where these are to be whole numbers."""
    return {"int8": 8, "int4": 4}.get(dtype)


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
def tensors_counted(progress: Progress) -> Iterator[None]:
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


def read_model_config(path: Path) -> PretrainedConfig:
    """config.json as transformers reads it. Raises ModelRefused."""
    _check_sizes(read_config(path))
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(
            path, local_files_only=True, trust_remote_code=False
        )
    except StrictDataclassError as error:
        problem = " ".join(str(error).split())  # of several lines, indented
        raise ModelRefused(f"config.json says what cannot be: {problem}") from error
    except (ValueError, KeyError, OSError, TypeError) as error:
        raise ModelRefused(f"transformers does not know this architecture: {error}") from error
    return config


def _check_sizes(config: dict[str, Any]) -> None:
    """Raise ModelRefused where a model has more layers, or larger ones, than any there is: transformers
    would list ten million layers for minutes, and make room for tensors that no file holds."""
    for values in (config, *(value for value in config.values() if isinstance(value, dict))):
        for size, most in _MOST.items():
            value = values.get(size)
            if isinstance(value, int | float) and value > most:
                raise ModelRefused(
                    f"config.json says {size} {value!r:.20}; at most {most} are served."
                )


def from_pretrained(
    auto_class: Any, path: Path, config: PretrainedConfig, **settings: Any
) -> tuple[nn.Module, dict[str, Any]]:
    """A model from safetensors, ready to run, and transformers' report for `check_complete`.

    Raises ModelRefused.
    """
    source: Path | None = path
    if "state_dict" in settings:
        # transformers takes no path beside tensors, and its automatic class needs one.
        source = None
        with torch.device("meta"):
            auto_class = type(auto_class.from_config(config))
    try:
        model, report = auto_class.from_pretrained(
            source,
            config=config,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they come back in the report, by their names
            **settings,
        )
    except (ValueError, KeyError, OSError, RuntimeError, TypeError) as error:
        raise ModelRefused(f"The weights do not load: {error}") from error
    return model.eval(), report


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


def read_rust_tokenizer(path: Path) -> Tokenizer:
    """tokenizer.json of a model directory. Raises ModelRefused."""
    try:
        return Tokenizer.from_file(str(path / "tokenizer.json"))
    except Exception as error:  # the Rust side raises bare Exception
        raise ModelRefused(f"The tokenizer does not load: {error}") from error


def _eos_ids(name: str, path: Path, config: PretrainedConfig) -> frozenset[int]:
    """Every id that ends an answer: generation_config.json knows lists that config.json does not.

    What is no token of the model is left out, with a line in the log.
    """
    text_config = config.get_text_config()
    named = [getattr(one, "eos_token_id", None) for one in (config, text_config)]
    named.append(read_generation_config(path).get("eos_token_id"))
    known, strange = set[int](), set[str]()
    for eos in chain.from_iterable(map(_listed, named)):
        if type(eos) is int and 0 <= eos < text_config.vocab_size:
            known.add(eos)
        else:
            strange.add(f"{eos!r:.50}")
    if strange:
        logger.warning(
            "%s has no tokens %s, which should end answers", name, ", ".join(sorted(strange))
        )
    return frozenset(known)


def _listed(value: Any) -> list[Any]:
    """One value or several."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
