"""Which price holds now: a row of the console, or else VITRINE_PRICES. Synchronous.

Asked once when an answer begins and once when it ends, of the database itself: so a change counts in
every process from the next answer on, and nothing has to be told to anybody.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings

from chat.events import Finished, LogEvent, RunUsage, Stopped
from chat.price_models import ModelPrice
from chat.prices import Price
from inference import Usage


def price_of(model: str) -> Price | None:
    """None: nothing. One query."""
    return prices_of([model]).get(model)


def prices_of(models: Iterable[str]) -> Mapping[str, Price]:
    """Of those that have one. One query."""
    wanted = set(models)
    rows = ModelPrice.objects.filter(pk__in=wanted)
    by_environment = {name: price for name, price in settings.PRICES.items() if name in wanted}
    return by_environment | {row.model: row.price for row in rows}


def has_prices() -> bool:
    """Whether anything costs anything. One query at most."""
    return bool(settings.PRICES) or ModelPrice.objects.exists()


def cost_of(price: Price | None, end: LogEvent) -> dict[str, Any] | None:
    """`{amount, currency}`, the amount as text; None where nothing has a price."""
    if price is None or not isinstance(end, Finished | Stopped):
        return None
    return cost_of_usage(price, end.usage, end.timings.engine_ms)


def cost_of_usage(price: Price, usage: RunUsage | Usage, engine_ms: float = 0.0) -> dict[str, Any]:
    amount = price.of(
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        engine_ms=engine_ms,
    )
    return {"amount": f"{amount:.8f}", "currency": settings.CURRENCY}
