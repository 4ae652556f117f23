"""What a model's own files say about its use; read without torch or transformers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.context_window import DEFAULT_TOKENS, servable_tokens
from inference.weights import read_config

DEFAULT_MAX_TOKENS = 4096
"""Of an answer whose length nobody has asked for."""


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """The makers' sampling settings; OpenAI's where they name none."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


def read_sampling_defaults(path: Path) -> SamplingDefaults:
    """From generation_config.json; a model made for greedy decoding gets temperature 0."""
    try:
        values: dict[str, Any] = json.loads((path / "generation_config.json").read_text())
    except (OSError, ValueError):
        return SamplingDefaults()
    repetition_penalty = float(values.get("repetition_penalty") or 1.0)
    if values.get("do_sample") is False:
        return SamplingDefaults(temperature=0.0, repetition_penalty=repetition_penalty)
    return SamplingDefaults(
        temperature=float(values.get("temperature") or 1.0),
        top_p=float(values.get("top_p") or 1.0),
        top_k=int(values.get("top_k") or 0),
        min_p=float(values.get("min_p") or 0.0),
        repetition_penalty=repetition_penalty,
    )


def read_context_tokens(path: Path) -> int:
    """The longest context that a model can be served with, from config.json. Raises ModelRefused."""
    config = read_config(path)
    text_config = config.get("text_config") or config
    known = (text_config.get(n) for n in ("max_position_embeddings", "n_positions", "n_ctx"))
    made_for = int(next((value for value in known if value), DEFAULT_TOKENS))
    return servable_tokens(text_config, made_for)
