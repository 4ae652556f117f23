"""Proof, at load time, that an architecture's layers take adapters as if these were in their weights.

A layer may see other rows than those of the step, be multiplied past its module, or not be used at all,
and an adapter beside it would then be wrong in silence. So a shrunk copy of the architecture, of random
weights, gets two random adapters at the same layers, and answers in one mixed batch what its plain
forward answers with the adapters in its weights.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from inference import attention
from inference.adapter_weights import Pair, place_of
from inference.adapters import Adapters
from inference.errors import ModelRefused
from inference.hybrid_kv import HybridKV
from inference.hybrid_runner import make_runner
from inference.kv import KVCache
from inference.kv_cache import SlabKV
from inference.messages import AdapterInfo
from inference.selftest import (
    MAX_RELATIVE_ERROR,
    plain_logits,
    run_packed,
    small_model,
    worst_error,
)
from inference.slot_states import has_states
from inference.small_config import shrink

_NAMES = ("", "one", "two")  # of the adapters that the three prompts go through
_RANK = 4
_STD = 0.2  # of A and B: beside weights of 0.15, what they add is some half of these


def check_adapters(config: PretrainedConfig, kinds: set[str]) -> None:
    """Raise ModelRefused where adapters at such layers would be wrong, or cannot be proven right."""
    try:
        error = adapted_error(shrink(config), kinds)
    except ModelRefused:
        raise
    except Exception as problem:  # whatever a model file raises, the answer is the same
        raise ModelRefused(
            f"The architecture '{config.model_type}' does not run with such an adapter; a small copy of"
            f" it failed by {type(problem).__name__}: {problem}"
        ) from problem
    if not error <= MAX_RELATIVE_ERROR:
        raise ModelRefused(
            f"The architecture '{config.model_type}' computes something else with such an adapter than"
            f" with the same in its weights (relative error {error:.1e}), so its answers would be wrong."
        )


@torch.inference_mode()
def adapted_error(config: PretrainedConfig, kinds: set[str]) -> float:
    """The largest relative difference of any last-token logits, beside against in the weights."""
    model, prompts = small_model(config)
    layers = {path: module for path, module in model.named_modules() if _kind_of(path) in kinds}
    if missing := kinds - kinds_of(layers):
        raise ModelRefused(
            f"A small copy of the architecture '{config.model_type}' has no layer like {min(missing)};"
            " so it cannot be proven that adapters of it are served right."
        )
    pairs = {name: _random_pairs(layers, seed) for seed, name in enumerate(_NAMES) if name}
    plain = []
    for name, prompt in zip(_NAMES, prompts, strict=True):
        with _merged(layers, pairs.get(name, {})):
            plain += plain_logits(model, [prompt])
    adapters = Adapters()
    places = {path: place_of(path, module) for path, module in layers.items()}
    for name, own in pairs.items():
        adapters.add(AdapterInfo(name), places, own)
    model.set_attn_implementation(attention.NAME)
    kv: KVCache = HybridKV(1024, 256, len(prompts)) if has_states(config) else SlabKV(1024, 256)
    packed = run_packed(make_runner(model, kv, adapters), prompts, _NAMES)
    return worst_error((logits, plain[which][position]) for which, position, logits in packed)


def kinds_of(paths: Iterable[str]) -> set[str]:
    """The same for all layers of a stack, and whether or not the text model is one of several."""
    return {_kind_of(path) for path in paths}


def _kind_of(path: str) -> str:
    parts = [part for part in path.split(".") if part not in ("model", "language_model")]
    return re.sub(r"\d+", "#", ".".join(parts))


def _random_pairs(layers: dict[str, nn.Module], seed: int) -> dict[str, Pair]:
    generator = torch.Generator().manual_seed(seed)
    pairs = {}
    for path, module in layers.items():
        place = place_of(path, module)
        a = torch.randn(_RANK, place.num_inputs, generator=generator) * _STD
        pairs[path] = a, torch.randn(place.columns.stop, _RANK, generator=generator) * _STD
    return pairs


@contextmanager
def _merged(layers: dict[str, nn.Module], pairs: dict[str, Pair]) -> Iterator[None]:
    """Within, adapters are in the weights."""
    before: dict[str, Tensor] = {}
    for path, (a, b) in pairs.items():
        weight = layers[path].get_parameter("weight").data
        before[path] = weight.clone()
        # A Conv1D's weights are (inputs, outputs).
        weight += b @ a if isinstance(layers[path], nn.Linear) else (b @ a).T
    try:
        yield
    finally:
        for path, weight in before.items():
            layers[path].get_parameter("weight").data.copy_(weight)
