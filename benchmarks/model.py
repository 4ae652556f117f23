"""The built-in model as a benchmark needs it: it never ends its answer by itself."""

import json
import shutil
from pathlib import Path

from inference.builtin import MODEL_DIR

NAME = "benchmark"


def make_endless(folder: Path, context_tokens: int) -> Path:
    """A copy without end tokens, whose context ends every answer at the same length."""
    path = folder / NAME
    shutil.copytree(MODEL_DIR, path)
    for file, changes in (
        ("config.json", {"eos_token_id": None, "max_position_embeddings": context_tokens}),
        ("generation_config.json", {"eos_token_id": None}),
    ):
        values = json.loads((path / file).read_text())
        (path / file).write_text(json.dumps(values | changes))
    return path
