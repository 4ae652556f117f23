"""What models cost, out of `VITRINE_PRICES`."""

import re
from collections.abc import Mapping, Sequence

from django.core.exceptions import ImproperlyConfigured

from chat.prices import Price, parse_prices

_ISO_CODE = re.compile(r"[A-Za-z]{3}")


def currency(code: str) -> str:
    """VITRINE_CURRENCY. Raises ImproperlyConfigured."""
    if not _ISO_CODE.fullmatch(code):
        raise ImproperlyConfigured(
            f"VITRINE_CURRENCY must be a code of ISO 4217, such as EUR, not {code!r}."
        )
    return code.upper()


def prices(entries: Sequence[str]) -> Mapping[str, Price]:
    """Prices by model. Raises ImproperlyConfigured."""
    try:
        return parse_prices(entries)
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_PRICES: {error}.") from None
