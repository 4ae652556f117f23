"""What a model keeps of the sequences that it reads: measured, as configs do not tell.

Latent attention keeps more than its config's `head_dim`, layers differ in their heads, some keep
nothing and some a state. So the loaded model reads one token, and what it has stored is counted.
"""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import PretrainedConfig

from inference.block_pool import BLOCK_TOKENS
from inference.hybrid_kv import HybridKV
from inference.hybrid_runner import make_runner
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.messages import GenerateRequest, SamplingParams
from inference.paged_kv import PagedKV
from inference.sequence import Sequence
from inference.slot_states import has_states


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of keys and values for each token, and of states for each sequence.

    `state_bytes` is None where no layer keeps a state, and such a model needs no slots.
    """

    kv_bytes_per_token: int
    state_bytes: int | None


def measure_footprint(
    model: nn.Module, config: PretrainedConfig, kept_as: torch.dtype | None = None
) -> Footprint:
    """Let a loaded model read one token, and count what it keeps, in pages as `kept_as` says."""
    kv: KVCache = PagedKV(1, BLOCK_TOKENS, kept_as=kept_as)
    if has_states(config):
        kv = HybridKV(1, 1, num_slots=1)
    elif kept_as is None and next(model.parameters()).device.type == "cpu":
        kv = SlabKV(1, 1)
    sequence = Sequence(GenerateRequest("one", "", (0,), SamplingParams(max_tokens=1)))
    kv.reserve(sequence.id, 1)
    make_runner(model, kv).run([(sequence, 1)])
    state_bytes = kv.states.num_bytes(sequence.id) if isinstance(kv, HybridKV) else None
    return Footprint(kv.bytes_per_token(sequence.id), state_bytes)
