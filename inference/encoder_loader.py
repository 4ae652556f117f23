"""From a model directory to an encoder that runs, or to a sentence that says why not."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModel, AutoModelForSequenceClassification, PretrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from inference.encoder_layout import EncoderLayout, read_encoder_layout
from inference.encoder_model import EncoderModel
from inference.encoder_revision import encoder_revision
from inference.errors import ModelRefused
from inference.int8_linear import weights_bytes
from inference.loader import (
    Progress,
    check_complete,
    check_memory,
    from_pretrained,
    quantize,
    read_model_config,
    tensors_counted,
)
from inference.merged_weights import Change
from inference.messages import ModelInfo
from inference.pooling import load_dense
from inference.weights import read_weights


def load_encoder(
    name: str,
    path: Path,
    progress: Progress,
    dtype: torch.dtype,
    *,
    bits: int | None = None,
    change: Change = lambda model: None,
) -> tuple[EncoderModel, ModelInfo]:
    """Load an embedding model, a classifier or a reranker after every check that can be made before.

    `bits` (8 or 4) are those of the linear layers' weights, where the processor can. What stands behind
    them, the head of a classifier too, stays in `dtype`: it is small, and nothing evens its errors out.
    `change` is done to the weights as they were read.
    Raises ModelRefused (files, architecture, self-test) or ModelTooLarge. Never runs code from the
    model's directory and never opens pickled weights.
    """
    progress("reading files", 0.0)
    layout = read_encoder_layout(path)
    weights = read_weights(path)
    check_memory(name, weights, dtype)
    config = read_model_config(path)
    if config.is_encoder_decoder:
        raise ModelRefused(f"{config.model_type} is an encoder with a decoder, not an encoder.")
    with tensors_counted(progress):
        model = _load_model(path, config, layout, dtype)
    change(model)
    dtype_name = str(dtype).removeprefix("torch.")
    if bits and (bits := quantize(name, _body_of(model), bits, progress)):
        dtype_name = f"int{bits}"
    dense = [load_dense(directory) for directory in layout.dense]
    encoder = EncoderModel(model, layout, modes=_modes(layout, config), dense=dense)
    progress("checking the batches", 0.9)
    info = ModelInfo(
        name=name,
        revision=encoder_revision(path, weights, layout),
        architecture=str(config.model_type),
        num_parameters=weights.num_parameters,
        weights_bytes=weights_bytes(model),
        max_context_tokens=layout.window_tokens,
        dtype=dtype_name,
        device="cpu",
    )
    return encoder, info


def _load_model(
    path: Path, config: PretrainedConfig, layout: EncoderLayout, dtype: torch.dtype
) -> nn.Module:
    is_embedding = layout.kind == "embedding"
    auto_class = AutoModel if is_embedding else AutoModelForSequenceClassification
    if hasattr(config.get_text_config(), "use_cache"):
        config.get_text_config().use_cache = False
    model, report = from_pretrained(auto_class, path, config, dtype=dtype)
    if is_embedding:
        report = _without_poolers(report)
    check_complete(model, report)
    return model


def _body_of(model: nn.Module) -> nn.Module:
    """Without the head of a classifier."""
    body: nn.Module = getattr(model, "base_model", model)
    return body


def _without_poolers(report: dict[str, Any]) -> dict[str, Any]:
    """transformers hangs a layer behind some encoders that no vector of ours comes through."""
    missing = [name for name in report["missing_keys"] if not name.startswith("pooler.")]
    return {**report, "missing_keys": missing}


def _modes(layout: EncoderLayout, config: PretrainedConfig) -> tuple[str, ...]:
    """As the files say; else the mean, or the last token where only that one has seen all."""
    if layout.kind != "embedding" or layout.pooling:
        return layout.pooling
    kind = str(config.model_type)
    is_decoder = (
        kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
    return ("lasttoken",) if is_decoder else ("mean",)
