"""Proof, at load time, that an architecture's layers take adapters as if these were in their weights.

A layer may see other rows than those of the step, be multiplied past its module, or not be used at all,
and an adapter beside it would then be wrong in silence. So a shrunk copy of the architecture, of random
weights, gets two random adapters at the same layers, and answers in one mixed batch what its plain
forward answers with the adapters in its weights; one of an encoder, likewise, what it makes of texts.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PretrainedConfig

from inference import attention
from inference.adapter_weights import Pair, place_of
from inference.adapters import Adapters
from inference.errors import ModelRefused
from inference.hybrid_runner import make_runner
from inference.merged_weights import add_to_weight
from inference.messages import AdapterInfo
from inference.selftest import (
    plain_logits,
    require_right,
    run_packed,
    small_cache,
    small_model,
    some_prompts,
    widen,
    worst_error,
)
from inference.small_config import shrink
from inference.vision.parts import TEXT_PARTS

_NAMES = ("", "one", "two")  # of the adapters that the three prompts go through
_RANK = 4
_STD = 0.2  # of A and B: beside weights of 0.15, what they add is some half of these


def check_adapters(config: PretrainedConfig, kinds: set[str]) -> None:
    """Raise ModelRefused where adapters at such layers would be wrong, or cannot be proven right."""
    _check(config, kinds, adapted_error)


def check_encoder_adapters(config: PretrainedConfig, kinds: set[str]) -> None:
    """As `check_adapters`, of an encoder."""
    _check(config, kinds, encoder_error)


def _check(
    config: PretrainedConfig,
    kinds: set[str],
    find_error: Callable[[PretrainedConfig, set[str]], float],
) -> None:
    require_right(
        config,
        lambda: find_error(shrink(config), kinds),
        fails="does not run with such an adapter",
        differs="with such an adapter than with the same in its weights",
    )


@torch.inference_mode()
def adapted_error(config: PretrainedConfig, kinds: set[str]) -> float:
    """The largest relative difference of any last-token logits, beside against in the weights."""
    model, prompts = small_model(config)
    layers = _layers_of(model, kinds)
    pairs = {name: _random_pairs(layers, seed) for seed, name in enumerate(_NAMES) if name}
    plain = []
    for name, prompt in zip(_NAMES, prompts, strict=True):
        with _merged(layers, pairs.get(name, {})):
            plain += plain_logits(model, [prompt])
    adapters = _adapters_of(layers, pairs)
    model.set_attn_implementation(attention.NAME)
    runner = make_runner(model, small_cache(config, len(prompts)), adapters)
    packed = run_packed(runner, prompts, _NAMES)
    return worst_error((logits, plain[which][position]) for which, position, logits in packed)


@torch.inference_mode()
def encoder_error(config: PretrainedConfig, kinds: set[str]) -> float:
    """The largest relative difference of any token's output, beside against in the weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModel.from_config(config, dtype=torch.float32).eval()  # type: ignore[no-untyped-call]
        widen(model)
        prompts = some_prompts(config)
    layers = _layers_of(model, kinds)
    pairs = {name: _random_pairs(layers, seed) for seed, name in enumerate(_NAMES) if name}
    plain = []
    for name, prompt in zip(_NAMES, prompts, strict=True):
        with _merged(layers, pairs.get(name, {})):
            plain.append(model(input_ids=torch.tensor([prompt])).last_hidden_state)
    adapters = _adapters_of(layers, pairs)
    beside = []
    for name, prompt in zip(_NAMES, prompts, strict=True):
        adapters.enter_one(name, len(prompt))
        beside.append(model(input_ids=torch.tensor([prompt])).last_hidden_state)
    return worst_error(zip(beside, plain, strict=True))


def _layers_of(model: Any, kinds: set[str]) -> dict[str, nn.Module]:
    """By their paths. Raises ModelRefused where there is none of a kind."""
    layers = {path: module for path, module in model.named_modules() if _kind_of(path) in kinds}
    if missing := kinds - kinds_of(layers):
        raise ModelRefused(
            f"A small copy of the architecture '{model.config.model_type}' has no layer like"
            f" {min(missing)}; so it cannot be proven that adapters of it are served right."
        )
    return layers


def _adapters_of(layers: dict[str, nn.Module], pairs: dict[str, dict[str, Pair]]) -> Adapters:
    adapters = Adapters()
    places = {path: place_of(path, module) for path, module in layers.items()}
    for name, own in pairs.items():
        adapters.add(AdapterInfo(name), places, own)
    return adapters


def kinds_of(paths: Iterable[str]) -> set[str]:
    """The same for all layers of a stack, and whether or not the text model is one of several."""
    return {_kind_of(path) for path in paths}


def _kind_of(path: str) -> str:
    parts = [part for part in path.split(".") if part not in ("model", *TEXT_PARTS)]
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
    for path, pair in pairs.items():
        before[path] = layers[path].get_parameter("weight").data.clone()
        add_to_weight(layers[path], pair)
    try:
        yield
    finally:
        for path, weight in before.items():
            layers[path].get_parameter("weight").data.copy_(weight)
