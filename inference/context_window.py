"""How many tokens a model is served with: what its config says, or less where RoPE asks for less.

Read from plain values, so that a model that is not loaded tells the same as a loaded one.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PretrainedConfig

DEFAULT_TOKENS = 2048
_BY_LENGTH = ("longrope", "dynamic", "su")  # "su" is what the first files with longrope call it


def max_context_tokens(config: "PretrainedConfig") -> int:
    """The longest context that a loaded config can be served with, in tokens."""
    text_config = config.get_text_config()
    made_for = int(getattr(text_config, "max_position_embeddings", None) or DEFAULT_TOKENS)
    return servable_tokens(text_config.to_dict(), made_for)


def servable_tokens(config: Mapping[str, Any], made_for: int) -> int:
    """As many of the `made_for` tokens as answers do not depend on their neighbours for.

    Two kinds of RoPE ("longrope", "dynamic") choose their factors by the longest position of a whole
    forward pass. Beyond the window of their pretraining a short answer would change as soon as a
    long one is in the same step, and keys of one sequence would carry factors of several lengths.
    """
    windows = [
        config.get("original_max_position_embeddings")
        or rope.get("original_max_position_embeddings")
        or made_for
        for rope in rope_parameters(config)
        if depends_on_length(rope)
    ]
    return min([made_for, *map(int, windows)])


def rope_parameters(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The RoPE settings of a text config: one dict, or one per kind of layer."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    per_layer_type = [value for value in rope.values() if isinstance(value, dict)]
    yield from per_layer_type or [rope]


def depends_on_length(rope: Mapping[str, Any]) -> bool:
    kind = str(rope.get("rope_type") or rope.get("type") or "")
    return any(name in kind for name in _BY_LENGTH)
