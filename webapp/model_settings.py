"""What is set for single models: which adapters each has, which one guesses for which, how many workers
each has, and over how many processes it is split."""

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

from inference.config import (
    Adapter,
    parse_adapters,
    parse_draft_models,
    parse_ranks,
    parse_workers,
)


def adapters(entries: Sequence[str]) -> tuple[Adapter, ...]:
    """LoRA adapters and their models, out of `VITRINE_ADAPTERS`. Raises ImproperlyConfigured.

    Whether there are such models and files is told later, as of draft models.
    """
    try:
        return parse_adapters(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_ADAPTERS: {error}.") from None


def draft_models(entries: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of a model and its draft model, out of `VITRINE_DRAFT_MODELS`. Raises ImproperlyConfigured.

    Whether there are such models is told when the first one is loaded: they may be pulled until then.
    """
    try:
        return parse_draft_models(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_DRAFT_MODELS: {error}.") from None


def workers(entries: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Pairs of a model and a number, out of `VITRINE_WORKERS`. Raises ImproperlyConfigured."""
    try:
        return parse_workers(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_WORKERS: {error}.") from None


def ranks(entries: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Pairs of a model and a number, out of `VITRINE_TENSOR_PARALLEL`. Raises ImproperlyConfigured."""
    try:
        return parse_ranks(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_TENSOR_PARALLEL: {error}.") from None
