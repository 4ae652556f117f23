"""What a model's own files say about its use; read without torch or transformers."""

import json
import logging
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from inference.checks import may_be
from inference.context_window import DEFAULT_TOKENS, servable_tokens
from inference.weights import odd_values_refused, read_config

DEFAULT_MAX_TOKENS = 4096
"""Of an answer whose length nobody has asked for."""


logger = logging.getLogger(__name__)
_FILE = "generation_config.json"


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """The makers' sampling settings; OpenAI's where they name none."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


_NAMES = tuple(field.name for field in fields(SamplingDefaults))


def read_sampling_defaults(path: Path) -> SamplingDefaults:
    """From generation_config.json; a model made for greedy decoding gets temperature 0.

    What no request may ask for is left out, with a line in the log.
    """
    values = read_generation_config(path)
    given = {name: values[name] for name in _NAMES if values.get(name) is not None}
    if isinstance(top_k := given.get("top_k"), float) and top_k.is_integer():
        given["top_k"] = int(top_k)
    sound = {name: value for name, value in given.items() if may_be(name, value)}
    if strange := [f"{name} {given[name]!r:.50}" for name in given.keys() - sound.keys()]:
        logger.warning("%s/%s: not used: %s", path, _FILE, ", ".join(sorted(strange)))
    if values.get("do_sample") is False:
        kept = {name: sound[name] for name in sound.keys() & {"repetition_penalty"}}
        return SamplingDefaults(temperature=0.0, **kept)
    return SamplingDefaults(**sound)


def read_generation_config(path: Path) -> dict[str, Any]:
    """generation_config.json of a model directory; empty where there is none, or no JSON object."""
    try:
        values = json.loads((path / _FILE).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def read_context_tokens(path: Path) -> int:
    """The longest context that a model can be served with, from config.json. Raises ModelRefused."""
    config = read_config(path)
    with odd_values_refused(path):
        text_config = config.get("text_config") or config
        known = (text_config.get(n) for n in ("max_position_embeddings", "n_positions", "n_ctx"))
        made_for = int(next((value for value in known if value), DEFAULT_TOKENS))
        return servable_tokens(text_config, made_for)
