"""Which model guesses for which, out of `VITRINE_DRAFT_MODELS`."""

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

from inference.config import parse_draft_models


def draft_models(entries: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of a model and its draft model. Raises ImproperlyConfigured.

    Whether there are such models is told when the first one is loaded: they may be pulled until then.
    """
    try:
        return parse_draft_models(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_DRAFT_MODELS: {error}.") from None
