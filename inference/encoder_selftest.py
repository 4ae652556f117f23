"""Proof, at load time, that an encoder gives a text the same beside any neighbours as alone.

A model can ignore the mask of a padded batch without an error: states that run over the padding,
positions that are counted from the wrong end. So the loaded model encodes texts of several lengths
twice, one by one and as one batch.
"""

from array import array

import torch

from inference.encode_messages import EncoderInput
from inference.encoder_model import EncoderModel
from inference.errors import ModelRefused

_LENGTHS = (19, 3, 11)
_TOLERANCE = 1e-3
_TOLERANCE_ROUNDED = (
    0.1  # of bfloat16 and of few bits, which round a batch in another way than its rows
)


def check_batches(encoder: EncoderModel) -> None:
    """Raise ModelRefused when a row of a batch differs from what its text alone gives."""
    is_rounded = encoder.dtype is not torch.float32 or encoder.is_quantized
    tolerance = _TOLERANCE_ROUNDED if is_rounded else _TOLERANCE
    inputs = [_input(encoder, length) for length in _LENGTHS]
    try:
        alone = torch.cat([encoder.encode([each]) for each in inputs])
        together = encoder.encode(inputs) if encoder.can_batch else alone
    except Exception as error:
        raise ModelRefused(f"The model does not run: {type(error).__name__}: {error}") from error
    differences = (together - alone).norm(dim=-1) / alone.norm(dim=-1).clamp(min=1e-6)
    if not bool((differences <= tolerance).all()):  # NaN is no small difference either
        raise ModelRefused(
            "In a batch its results depend on the neighbours"
            f" (relative error {differences.max().item():.2g})."
        )


def _input(encoder: EncoderModel, length: int) -> EncoderInput:
    length = min(length, encoder.layout.window_tokens)
    vocab_size = encoder.layout.vocab_size
    # From the upper half: the lowest ids are special, padding among them.
    ids = (vocab_size // 2 + (7919 * i + 31 * length) % (vocab_size // 2) for i in range(length))
    return EncoderInput(array("i", ids))
