"""Proof, at load time, that an architecture computes the same when it is split over several processes.

A plan that forgets a layer, or sums what is whole already, gives other answers without an error. So a
small copy with random weights answers the same prompts twice: whole, by transformers' plain forward,
and in parts over pages of keys and values. Every rank runs this at the same time.
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from transformers import AutoModelForCausalLM, PretrainedConfig

from inference import attention
from inference.experts import set_experts_implementation
from inference.model_runner import ModelRunner
from inference.paged_kv import PagedKV
from inference.ranks import check_can_be_split, split_over
from inference.selftest import (
    plain_logits,
    require_right,
    run_packed,
    small_model,
    worst_error,
)
from inference.small_config import shrink

_NUM_BLOCKS, _CONTEXT_TOKENS = 64, 256


def check_ranks(config: PretrainedConfig, num_ranks: int) -> None:
    """Raise ModelRefused where the parts together would be wrong, or cannot be made."""
    check_can_be_split(config, num_ranks)
    require_right(
        config,
        lambda: split_error(_divisible(shrink(config), num_ranks), num_ranks),
        fails=f"cannot be split into {num_ranks} parts",
        differs=f"when it is split into {num_ranks} parts",
    )


@torch.inference_mode()
def split_error(config: PretrainedConfig, num_ranks: int) -> float:
    """The largest relative difference of any last-token logits, in parts against whole; may be NaN."""
    model, prompts = small_model(config)
    plain = plain_logits(model, prompts)
    with tempfile.TemporaryDirectory(prefix="vitrine-parts-") as own:
        folder = _from_rank_0(own)
        if folder == own:
            model.save_pretrained(own)
        torch.distributed.barrier()
        parts: Any = AutoModelForCausalLM.from_pretrained(
            Path(folder),
            dtype=torch.float32,
            attn_implementation=attention.NAME,
            local_files_only=True,
            **split_over(num_ranks),
        )
        torch.distributed.barrier()
    set_experts_implementation(parts)
    runner = ModelRunner(parts.eval(), PagedKV(_NUM_BLOCKS, _CONTEXT_TOKENS))
    packed = run_packed(runner, prompts)
    return worst_error((logits, plain[which][position]) for which, position, logits in packed)


def _from_rank_0(value: str) -> str:
    values: list[Any] = [value]
    torch.distributed.broadcast_object_list(values)
    return str(values[0])


def _divisible(small: PretrainedConfig, num_ranks: int) -> PretrainedConfig:
    """With so many heads that each rank has some: what is shrunk has two of keys at least."""
    num_kv_heads = getattr(small, "num_key_value_heads", None)
    if isinstance(num_kv_heads, int) and num_kv_heads % num_ranks:
        small.num_key_value_heads = num_kv_heads * num_ranks
        small.num_attention_heads *= num_ranks
    return small
