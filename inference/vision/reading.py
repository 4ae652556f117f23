"""Which plain model reads tokens like a part of one that sees. Imports torch.

The text layers of Qwen-VL are those of Qwen2 and Qwen3, but for the positions in their rotary embedding
(see grid_rotary) and what Qwen3-VL adds behind the first ones (see deep_rows). As the plain model they
have all that the engine knows to do for it.
"""

from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from inference.errors import ModelRefused
from inference.vision.deep_rows import add_deep_rows
from inference.vision.grid_rotary import GridRotary

_PLAIN = {"qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3"}
_OF_GRID = ("mrope_section", "mrope_interleaved")
_IN_TURN = frozenset({"qwen3_vl_text"})  # whatever mrope_interleaved says, as in transformers


def reading_config(config: PretrainedConfig) -> PretrainedConfig:
    """Of the model that reads its tokens; of others itself."""
    text = config.get_text_config()
    if text.model_type not in _PLAIN:
        return config
    values = text.to_dict()
    for name in ("model_type", "architectures", "transformers_version"):
        values.pop(name, None)
    rope = {key: v for key, v in text.rope_parameters.items() if key not in _OF_GRID}
    found: PretrainedConfig = AutoConfig.for_model(
        _PLAIN[text.model_type], **{**values, "rope_parameters": rope}
    )
    return found


def reader_of(body: Any, num_deep: int) -> Any:
    """The causal language model around transformers' module of layers that read tokens: without its
    head, and nothing is copied. Behind so many of its layers rows of images are added.

    Raises ModelRefused.
    """
    config = reading_config(body.config)
    with torch.device("meta"):
        writer: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    prefix = writer.base_model_prefix
    inner: Any = getattr(writer, prefix, None)
    if config is body.config:
        if type(inner) is not type(body):
            name = type(body).__name__
            raise ModelRefused(f"Its layers that read tokens, {name}, stand alone nowhere.")
        setattr(writer, prefix, body)
        writer.config = config
        return writer
    _move_weights(body, inner)
    sections = body.config.rope_parameters.get("mrope_section", body.rotary_emb.mrope_section)
    in_turn = body.config.model_type in _IN_TURN
    inner.rotary_emb = GridRotary(body.rotary_emb, sections, in_turn=in_turn)
    add_deep_rows(inner.layers[:num_deep])
    return writer


def _move_weights(body: nn.Module, inner: nn.Module) -> None:
    """Raises ModelRefused unless both have the same ones."""
    own = dict(body.named_parameters())
    if own.keys() != dict(inner.named_parameters()).keys():
        raise ModelRefused("Its layers that read tokens have other weights than a plain model's.")
    for name, weight in own.items():
        path, _, leaf = name.rpartition(".")
        setattr(inner.get_submodule(path), leaf, weight)
