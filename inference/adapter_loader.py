"""Loads the LoRA adapters of a model, or says why one is not served. Imports torch.

Whatever is wrong with an adapter, its model is served, and so are the others: the reason stands in the
log, in the model's `ModelInfo`, and in the answer of whoever asks for it.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig

from inference import memory
from inference.adapter_files import AdapterFiles, read_adapter
from inference.adapter_weights import Place, places_of, read_pairs
from inference.adapters import Adapters
from inference.adapters_selftest import check_adapters, check_encoder_adapters, kinds_of
from inference.config import Adapter, EngineConfig
from inference.encoder_model import EncoderModel
from inference.errors import ModelError, ModelRefused, ModelTooLarge
from inference.loader import LoadedModel, Progress
from inference.merged_weights import Again, Change, MergedWeights, add_to_weights
from inference.messages import AdapterInfo

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Base:
    """A loaded model, and what proves that layers of such `kinds` take adapters. `again` loads it once
    more, if it computes one adapter at a time."""

    name: str
    model: nn.Module
    config: PretrainedConfig
    check: Callable[[PretrainedConfig, set[str]], None]
    again: Again | None = None

    @classmethod
    def of_chat(cls, loaded: LoadedModel) -> "Base":
        return cls(loaded.info.name, loaded.model, loaded.config, check_adapters)

    @classmethod
    def of_encoder(cls, name: str, encoder: EncoderModel, again: Again | None = None) -> "Base":
        model: Any = encoder.model
        return cls(name, model, model.config, check_encoder_adapters, again)


def load_adapters(
    base: Base, config: EngineConfig, progress: Progress, dtype: torch.dtype
) -> Adapters:
    """Those that are configured for a loaded model, with the others' problems."""
    adapters = Adapters()
    proven: set[str] = set()
    configured = config.adapters_of(base.name)
    for number, adapter in enumerate(configured):
        progress(f"adapter {adapter.name}", 0.89 + 0.01 * number / len(configured))
        try:
            _load(adapter, adapters, base, config, dtype, proven)
        except ModelError as error:
            _refuse(adapter, adapters, str(error))
        except Exception as error:
            logger.exception("the adapter %s does not load", adapter.name)
            _refuse(adapter, adapters, f"{type(error).__name__}: {error}")
    return adapters


def _refuse(adapter: Adapter, adapters: Adapters, reason: str) -> None:
    problem = f"{adapter.name} is not served. {reason}"
    logger.warning("%s", problem)
    adapters.refuse(AdapterInfo(adapter.name, problem=problem))


def _load(
    adapter: Adapter,
    adapters: Adapters,
    base: Base,
    config: EngineConfig,
    dtype: torch.dtype,
    proven: set[str],
) -> None:
    """Raises ModelError, before the weights are read where that is possible. Adds to the kinds of layers
    that are proven to take adapters."""
    if adapter.problem:
        raise ModelRefused(adapter.problem)
    if config.num_ranks(adapter.base) > 1:
        raise ModelRefused(f"{adapter.base} is split over several processes.")
    files = read_adapter(adapter.path)
    places = places_of(files, base.model)
    _check_memory(adapter, files, dtype)
    if (kinds := kinds_of(files.layers)) - proven:
        base.check(base.config, kinds)
        proven |= kinds
    pairs = read_pairs(files, dtype, next(base.model.parameters()).device)
    info = AdapterInfo(adapter.name, files.revision, files.rank)

    def change(model: nn.Module) -> None:
        add_to_weights(places_of(files, model), pairs)

    if merged := _merged(base, places, change):
        adapters.add_merged(info, merged)
    else:
        adapters.add(info, places, pairs)


def _merged(base: Base, places: Mapping[str, Place], change: Change) -> MergedWeights | None:
    """None: the adapter is computed beside its base, which is slower and nothing else."""
    if base.again is None:
        return None
    try:
        return MergedWeights.of(base.model, places, change, base.again)
    except Exception as error:
        logger.warning("an adapter of %s is not merged: %s", base.name, error)
        return None


def _check_memory(adapter: Adapter, files: AdapterFiles, dtype: torch.dtype) -> None:
    needed = files.num_parameters * dtype.itemsize
    available = memory.available_bytes()
    if needed > available:
        raise ModelTooLarge(adapter.name, needed_bytes=needed, available_bytes=available)
