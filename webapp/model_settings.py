"""What is set for single models: which adapters each has, which one guesses for which, how many workers
each has, and over how many processes it is split.

Whether there are such models and files is told when they are loaded: they may be pulled until then.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

from inference.config import (
    Adapter,
    parse_adapters,
    parse_draft_models,
    parse_gpu_step,
    parse_ranks,
    parse_workers,
)

T = TypeVar("T")


def adapters(entries: Sequence[str]) -> tuple[Adapter, ...]:
    """LoRA adapters and their models. Raises ImproperlyConfigured."""
    return _parsed("VITRINE_ADAPTERS", parse_adapters, entries)


def draft_models(entries: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of a model and its draft model. Raises ImproperlyConfigured."""
    return _parsed("VITRINE_DRAFT_MODELS", parse_draft_models, entries)


def workers(entries: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Pairs of a model and how many workers it has. Raises ImproperlyConfigured."""
    return _parsed("VITRINE_WORKERS", parse_workers, entries)


def ranks(entries: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Pairs of a model and over how many processes it is split. Raises ImproperlyConfigured."""
    return _parsed("VITRINE_TENSOR_PARALLEL", parse_ranks, entries)


def gpu_step(entries: Sequence[str]) -> tuple[str, ...]:
    """What steps on a GPU may use. Raises ImproperlyConfigured."""
    return _parsed("VITRINE_GPU_STEP", parse_gpu_step, entries)


def _parsed(
    name: str, parse: Callable[[Sequence[str]], tuple[T, ...]], entries: Sequence[str]
) -> tuple[T, ...]:
    try:
        return parse(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from None
