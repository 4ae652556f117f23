"""What models cost, out of `VITRINE_PRICES`."""

from collections.abc import Mapping, Sequence

from django.core.exceptions import ImproperlyConfigured

from chat.prices import Price, parse_prices


def prices(entries: Sequence[str]) -> Mapping[str, Price]:
    """Prices by model. Raises ImproperlyConfigured."""
    try:
        return parse_prices(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_PRICES: {error}.") from None
