"""Models on other servers, out of `VITRINE_MODELS`."""

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

from inference.upstreams.spec import UpstreamSpec, parse_upstream
from webapp.env import env_secret


def upstream_specs(entries: Sequence[str]) -> tuple[UpstreamSpec, ...]:
    """The servers' models, keys included. Raises ImproperlyConfigured, which quotes no keys."""
    try:
        specs = tuple(parse_upstream(entry, env_secret) for entry in entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_MODELS: {error}.") from None
    names = [spec.name for spec in specs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ImproperlyConfigured(
            f"VITRINE_MODELS: {twice[0]} is there twice; servers that are alike go behind one name,"
            " with | between them."
        )
    return specs
