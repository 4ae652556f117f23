"""Where models compute: on a CUDA device, where there is one, else on the processor. Imports torch.

Whether the kernels for GPUs are used there is tried twice: by a small copy of the architecture, before
the weights are read, for it shows whether masks, groups and positions are understood; and by the loaded
model, for only its own sizes show whether the kernels fit into the device and are right in its type.
"""

import gc
import logging
from collections.abc import Callable

import torch
from torch import nn
from transformers import PretrainedConfig

from inference import attention
from inference.config import EngineConfig
from inference.context_window import max_context_tokens
from inference.errors import ModelError
from inference.model_runner import ModelRunner
from inference.out_of_memory import give_back, is_fault
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from inference.slot_states import has_states
from inference.small_config import shrink
from inference.spans import Span

logger = logging.getLogger(__name__)
CPU = torch.device("cpu")
_NUM_BLOCKS, _CONTEXT_TOKENS = 64, 512  # of the cache of what is tried
# Of two sequences: what a step computes of each. A prompt with a short one, single tokens, over so many
# keys that they are split among programs, and a draft that is verified.
_STEPS = ((300, 5), (1, 1), (4, 1))
_MAX_ROUNDING = 1e-2  # of layers that compute in 16 bits: about four times what rounding comes to
_KV_SHARE = 0.85  # of a device's memory that weights have left: activations need some
_MOST_KV_SHARE = 0.95  # where it is known how much that is: memory is also lost to fragments
_GRAPHS_BYTES = 768 * 2**20  # of the graphs of all batches, and of what draws


def device_of(config: EngineConfig) -> torch.device:
    """Of chat models. Raises ModelError where a device is asked for that is not there."""
    has_cuda = torch.cuda.is_available()
    if config.device == "cuda" and not has_cuda:
        raise ModelError("VITRINE_DEVICE is cuda, but torch finds no CUDA device.")
    return torch.device("cuda") if has_cuda and config.device != "cpu" else CPU


def fits_on(device: torch.device, name: str, config: PretrainedConfig) -> torch.device:
    """The device, or the processor for what cannot be served on it yet."""
    if device.type != "cpu" and has_states(config):
        logger.warning("%s keeps states, which are computed on the processor", name)
        return CPU
    return device


def free_bytes(device: torch.device) -> int:
    """What is free of a device's memory. What was tried before has left some with torch's allocator, and
    the driver counts that as taken."""
    gc.collect()
    give_back()
    return torch.cuda.mem_get_info(device)[0]


def free_kv_bytes(device: torch.device, step_bytes: int | None = None) -> int:
    """What keys and values may take of a device that holds the weights. `step_bytes` is what the largest
    step takes beside them; None: nobody knows, and a share is left."""
    free = free_bytes(device)
    if step_bytes is None:
        return int(free * _KV_SHARE)
    return max(0, min(free - step_bytes - _GRAPHS_BYTES, int(free * _MOST_KV_SHARE)))


def choose_kernels(name: str, config: PretrainedConfig, device: torch.device) -> str:
    """Use the kernels for GPUs where they compute the same as transformers for this architecture; else
    plain operations. Returns why not, or nothing."""
    return _decide(name, lambda: _problem_of_small_copy(config, device))


def check_kernels(
    name: str, model: nn.Module, config: PretrainedConfig, kept_as: torch.dtype | None = None
) -> str:
    """Give up the kernels where they are wrong at a loaded model's own sizes, or do not run at all.

    Returns why, or nothing. Compiles what steps will need. Uses nothing where nothing was used before.
    """
    if not attention.uses_kernels():
        return ""
    return _decide(name, lambda: _problem_at_size(model, config, kept_as))


def _decide(name: str, find_problem: Callable[[], str]) -> str:
    attention.use_kernels(None)
    try:
        problem = find_problem()
    except Exception as error:  # no triton, no compiler, no room on the device: all the same
        if is_fault(error):
            raise  # nothing runs in this process any more, by whatever way
        problem = f"{type(error).__name__}: {error}"
    if problem:
        attention.use_kernels(None)
        logger.warning("%s runs without the kernels for GPUs: %s", name, problem)
    return problem


def _problem_of_small_copy(config: PretrainedConfig, device: torch.device) -> str:
    from inference.gpu import attention as kernels  # fails where there is no triton

    attention.use_kernels(kernels)
    error = packed_error(shrink(config), PagedKV(_NUM_BLOCKS, _CONTEXT_TOKENS), device)
    if error <= MAX_RELATIVE_ERROR:
        return ""
    return f"they compute something else for a small copy of it (relative error {error:.1e})"


def _problem_at_size(
    model: nn.Module, config: PretrainedConfig, kept_as: torch.dtype | None
) -> str:
    """Each layer attends to random tokens by the kernels, and by plain operations in float32."""
    from inference.gpu import attention as kernels
    from inference.gpu.checking import CheckedKernels

    checked = CheckedKernels()
    attention.use_kernels(checked)
    _run_steps(model, config, kept_as)
    attention.use_kernels(kernels)
    dtype = next(model.parameters()).dtype
    limit = MAX_RELATIVE_ERROR if dtype == torch.float32 else _MAX_ROUNDING
    if (error := checked.worst_error()) <= limit:
        return ""
    return f"at its own sizes they compute something else (relative error {error:.1e})"


def _run_steps(model: nn.Module, config: PretrainedConfig, kept_as: torch.dtype | None) -> None:
    """_STEPS of random tokens, always the same ones: ranks of one model have to agree on them."""
    runner = ModelRunner(model, PagedKV(_NUM_BLOCKS, _CONTEXT_TOKENS, kept_as=kept_as))
    vocab_size = config.get_text_config().vocab_size
    longest = max_context_tokens(config) - sum(max(news) for news in _STEPS[1:])
    rng = torch.Generator().manual_seed(0)
    ends = [0] * len(_STEPS[0])
    for news in _STEPS:
        spans = [Span(str(i), ends[i], min(new, longest)) for i, new in enumerate(news)]
        ends = [span.start + span.num_tokens for span in spans]
        for span, end in zip(spans, ends, strict=True):
            runner.kv.reserve(span.sequence_id, end)
        positions = [p for s, end in zip(spans, ends, strict=True) for p in range(s.start, end)]
        ids = torch.randint(vocab_size, (len(positions),), generator=rng).tolist()
        with torch.inference_mode():
            runner.forward(ids, positions, spans, rows=[0])
