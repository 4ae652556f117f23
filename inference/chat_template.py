"""A directory's chat template, read without transformers: an adapter may bring another than its base."""

import json
from pathlib import Path

_MAX_BYTES = 16 * 2**20  # of tokenizer_config.json, which may list all added tokens


def read_chat_template(path: Path) -> str:
    """chat_template.jinja, else that of tokenizer_config.json, else of chat_template.json, where models
    that see have had it; "" where there is none that can be read.

    Source: https://huggingface.co/docs/transformers/chat_templating_writing.
    """
    try:
        return _text(path / "chat_template.jinja")
    except (OSError, ValueError):
        pass
    for name in ("tokenizer_config.json", "chat_template.json"):
        try:
            config = json.loads(_text(path / name))
        except (OSError, ValueError, RecursionError):
            continue
        template = config.get("chat_template") if isinstance(config, dict) else None
        if isinstance(template, str):
            return template
    return ""


def _text(file: Path) -> str:
    """Raises OSError, or ValueError for what is no text or far too long."""
    with file.open("rb") as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"{file} is too long")
    return content.decode()
