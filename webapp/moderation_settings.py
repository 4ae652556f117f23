"""Which classifiers judge texts, out of `VITRINE_MODERATION`."""

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

from moderation.classifiers.spec import ClassifierSpec, parse_classifiers
from webapp.env import env_secret


def classifier_specs(entries: Sequence[str]) -> tuple[ClassifierSpec, ...]:
    """None where moderation is off. Raises ImproperlyConfigured, which quotes no keys.

    Whether there are such models is told at the start of the server: they may be pulled until then.
    """
    try:
        return parse_classifiers(entries, env_secret)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_MODERATION: {error}.") from None
