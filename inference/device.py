"""Where models compute: on a CUDA device, where there is one, else on the processor. Imports torch."""

import logging

import torch
from transformers import PretrainedConfig

from inference import attention
from inference.config import EngineConfig
from inference.errors import ModelError
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from inference.slot_states import has_states
from inference.small_config import shrink

logger = logging.getLogger(__name__)
CPU = torch.device("cpu")
_NUM_BLOCKS, _CONTEXT_TOKENS = 64, 256  # of the cache of a small copy
_KV_SHARE = 0.85  # of a device's memory that weights have left: activations need some


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


def free_kv_bytes(device: torch.device) -> int:
    """What keys and values may take of a device that holds the weights."""
    free_bytes, _ = torch.cuda.mem_get_info(device)
    return int(free_bytes * _KV_SHARE)


def choose_kernels(name: str, config: PretrainedConfig, device: torch.device) -> str:
    """Use the kernels for GPUs where they compute the same as transformers for this architecture; else
    plain operations. Returns why not, or nothing."""
    attention.use_kernels(None)
    problem = _problem_of_kernels(config, device)
    if problem:
        attention.use_kernels(None)
        logger.warning("%s runs without the kernels for GPUs: %s", name, problem)
    return problem


def _problem_of_kernels(config: PretrainedConfig, device: torch.device) -> str:
    try:
        from inference.gpu import attention as kernels

        attention.use_kernels(kernels)
        error = packed_error(shrink(config), PagedKV(_NUM_BLOCKS, _CONTEXT_TOKENS), device)
    except Exception as problem:  # no triton, no compiler, a shape that it cannot do: all the same
        return f"{type(problem).__name__}: {problem}"
    if error <= MAX_RELATIVE_ERROR:
        return ""
    return f"they compute something else for a small copy of it (relative error {error:.1e})"
