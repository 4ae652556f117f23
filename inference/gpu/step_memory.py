"""What the largest step of a model takes of a device's memory, found out by one.

As in vLLM's profile run: activations depend on the model file as much as on its sizes.
"""

import logging

import torch
from torch import nn

from inference.block_pool import BLOCK_TOKENS
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.out_of_memory import is_fault
from inference.paged_kv import PagedKV
from inference.sequence import Sequence

logger = logging.getLogger(__name__)
_SLACK = 1.25  # other steps have other shapes, and the allocator rounds up
_LOGITS_COPIES = 3  # as the model gives them, in float32, and what is made of them


def step_bytes(
    model: nn.Module,
    *,
    num_tokens: int,
    num_sequences: int,
    vocab_size: int,
    kept_as: torch.dtype | None = None,
) -> int | None:
    """What a step may take beside weights, keys and values: one that reads so many tokens of a prompt,
    or draws for so many sequences. None where it could not be found out."""
    try:
        activations = _activation_bytes(model, num_tokens, kept_as)
    except Exception as error:  # a step that finds no room is the answer of smaller steps, later
        if is_fault(error):
            raise
        logger.warning("what a step takes could not be found out: %s", error)
        return None
    logits = _LOGITS_COPIES * num_sequences * vocab_size * torch.float32.itemsize
    return int(_SLACK * activations) + logits


def _activation_bytes(model: nn.Module, num_tokens: int, kept_as: torch.dtype | None) -> int:
    device = next(model.parameters()).device
    kv = PagedKV(-(-num_tokens // BLOCK_TOKENS) + 1, num_tokens + BLOCK_TOKENS, kept_as=kept_as)
    params = SamplingParams(max_tokens=1)
    sequence = Sequence(GenerateRequest("step", "", (1,) * num_tokens, params))
    assert kv.reserve(sequence.id, num_tokens)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    ModelRunner(model, kv).run([(sequence, num_tokens)])
    grown = torch.cuda.max_memory_allocated(device) - before
    pages = sum(tensor.nbytes for pair in kv.layers.values() for tensor in pair)
    return max(0, grown - pages)
