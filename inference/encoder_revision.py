"""Which model it is that makes vectors or scores, told by its files without loading it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from inference.encoder_layout import EncoderLayout, read_encoder_layout
from inference.weights import Weights, read_weights


def read_encoder_revision(path: Path) -> str:
    """As `ModelInfo.revision` of the model, once it is loaded. Raises ModelRefused."""
    return encoder_revision(path, read_weights(path), read_encoder_layout(path))


def encoder_revision(path: Path, weights: Weights, layout: EncoderLayout) -> str:
    """Changes with everything that a vector depends on: the pooling and the tokenizer as well."""
    dense = [directory / "model.safetensors" for directory in layout.dense]
    return revision_of(path, weights, [*sorted(path.glob("*/config.json")), *dense])


def revision_of(path: Path, weights: Weights, others: Sequence[Path] = ()) -> str:
    """Changes with the weights, with each JSON beside them, and with `others`."""
    digest = hashlib.sha256(weights.revision.encode())
    for file in [*sorted(path.glob("*.json")), *others]:
        digest.update(str(file.relative_to(path)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
