"""A decode step of so many sequences: by our runner over pages, with the kernels and without them.

The floor is the roofline: weights and the cache are read once, and all is multiplied.
"""

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from benchmarks.gpu.timing import Bench, Ceilings
from benchmarks.table import Row
from inference import attention
from inference.block_pool import BLOCK_TOKENS
from inference.device import choose_kernels
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.paged_kv import PagedKV
from inference.sequence import Sequence

_BATCHES = (1, 8, 32, 64, 128, 256)
_CONTEXT = 512
_QUICK_BATCHES, _QUICK_CONTEXT = (1, 3), 24


def measure_steps(bench: Bench, found: Ceilings, shape: dict[str, Any]) -> list[Row]:
    config = AutoConfig.for_model(**shape)
    with torch.device(bench.device):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    has_kernels = choose_kernels("the model", config, bench.device) == ""
    alone_s = _generate_step_s(bench, model)
    model.set_attn_implementation(attention.NAME)
    batches = _QUICK_BATCHES if bench.is_quick else _BATCHES
    rows = []
    try:
        for num_sequences in batches:
            rows.append(_row(bench, found, shape, model, num_sequences, has_kernels))
    finally:
        attention.use_kernels(None)
    rows[0]["transformers ms"] = alone_s * 1e3
    return rows


def _row(
    bench: Bench,
    found: Ceilings,
    shape: dict[str, Any],
    model: Any,
    num_sequences: int,
    has_kernels: bool,
) -> Row:
    context = _QUICK_CONTEXT if bench.is_quick else _CONTEXT
    by_kernels_s = _step_s(bench, model, num_sequences, context) if has_kernels else None
    kernels, attention._kernels = attention._kernels, None
    plain_s = _step_s(bench, model, num_sequences, context)
    attention._kernels = kernels
    best_s = by_kernels_s or plain_s
    floor_s = _floor_s(found, shape, model, num_sequences, context)
    return {
        "sequences": num_sequences,
        "kernels ms": by_kernels_s and by_kernels_s * 1e3,
        "plain ms": plain_s * 1e3,
        "tokens/s": num_sequences / best_s,
        "% of roofline": 100 * floor_s / best_s,
        "transformers ms": None,
    }


@torch.inference_mode()
def _step_s(bench: Bench, model: Any, num_sequences: int, context: int) -> float:
    """With the logits on the host, as the sampler wants them. The prompts are read before."""
    blocks = num_sequences * (-(-(context + 64) // BLOCK_TOKENS) + 1)
    runner = ModelRunner(model, PagedKV(blocks, context + 64))
    sequences = []
    for number in range(num_sequences):
        ids = torch.randint(3, 1000, (context,)).tolist()
        request = GenerateRequest(str(number), "", tuple(ids), SamplingParams(max_tokens=64))
        sequences.append(Sequence(request))
        runner.kv.reserve(str(number), context + 64)
        runner.run([(sequences[-1], context)])

    def step() -> None:
        for sequence in sequences:
            sequence.token_ids.append(7)
        runner.run([(sequence, 1) for sequence in sequences])

    return bench.seconds(step)


def _floor_s(
    found: Ceilings, shape: dict[str, Any], model: Any, num_sequences: int, context: int
) -> float:
    table = model.get_input_embeddings().weight.numel()
    is_tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    values = sum(one.numel() for one in model.parameters()) - (0 if is_tied else table)
    per_token = 4 * shape["num_hidden_layers"] * shape["num_key_value_heads"] * shape["head_dim"]
    read_s = 2 * values / found.bytes_per_s
    compute_s = 2 * values * num_sequences / found.operations_per_s
    return max(read_s, compute_s) + num_sequences * context * per_token / found.bytes_per_s


@torch.inference_mode()
def _generate_step_s(bench: Bench, model: Any) -> float:
    """transformers' generate of one sequence with its dynamic cache, a token."""
    context, num_tokens = (_QUICK_CONTEXT, 4) if bench.is_quick else (_CONTEXT, 64)
    ids = torch.randint(3, 1000, (1, context), device=bench.device)

    def run(count: int) -> float:
        setting = GenerationConfig(
            max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        return bench.seconds(
            lambda: model.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=setting
            )
        )

    return (run(num_tokens) - run(1)) / (num_tokens - 1)
