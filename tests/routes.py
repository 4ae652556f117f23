"""Every address that the site knows, as it is written in its patterns."""

from collections.abc import Iterator

from django.urls import URLResolver, get_resolver


def addresses() -> Iterator[str]:
    """With a slash in front."""
    return (f"/{route}" for route in _routes(get_resolver()))


def _routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _routes(entry, route)
        else:
            yield route
