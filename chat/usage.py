"""What the ledger says: of a day, of a month, by model, by key. Synchronous reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet, Sum

from chat import budgets
from chat.pricing import has_prices
from chat.rights import Rights
from chat.usage_models import Usage

WARN_AT = 0.8  # of a budget; from here on its owner is told
_SUMS = (
    "num_requests",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "engine_ms",
    "cost",
)


@dataclass(frozen=True, slots=True)
class Gauge:
    """How far a budget is used. Tokens, or `currency` where that is set."""

    name: str
    used: Decimal | int
    limit: Decimal | int | None
    currency: str = ""

    @property
    def share(self) -> float:
        """0 to 1, and beyond by the message that passed the limit; 0 where there is no limit."""
        if self.limit is None:
            return 0.0
        return float(self.used) / float(self.limit) if self.limit else 1.0

    @property
    def resets_at(self) -> datetime:
        """When it begins anew."""
        return budgets.next_day() if self.name.endswith("_per_day") else budgets.next_month()

    @property
    def is_low(self) -> bool:
        return self.share >= WARN_AT

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.used >= self.limit


def gauges(rights: Rights) -> list[Gauge]:
    """Of today and of this month. Two queries."""
    budget, spent = rights.budget(), budgets.spent_by(rights)
    found = [
        Gauge("tokens_per_day", spent.day_tokens, budget.tokens_per_day),
        Gauge("tokens_per_month", spent.month_tokens, budget.tokens_per_month),
    ]
    if has_prices() or budget.cost_per_month is not None:
        cost = spent.month_cost.quantize(Decimal("0.0001"))
        found.append(Gauge("cost_per_month", cost, budget.cost_per_month, settings.CURRENCY))
    if budget.key_tokens_per_day is not None:
        used = spent.key_day_tokens
        found.append(Gauge("key_tokens_per_day", used, budget.key_tokens_per_day))
    return found


def low_gauges(rights: Rights) -> list[Gauge]:
    """Those that their owner has to be told of. No query where nothing has an end."""
    if rights.budget().is_endless:
        return []
    return [gauge for gauge in gauges(rights) if gauge.is_low]


def entries(rows: QuerySet[Usage], since: date, until: date) -> QuerySet[Usage]:
    """Of these days, both included."""
    return rows.filter(day__gte=since, day__lte=until)


def summed(rows: QuerySet[Usage], by: Sequence[str]) -> list[dict[str, Any]]:
    """One entry for each combination of these fields, the most expensive in tokens first."""
    sums = {f"sum_{name}": Sum(name) for name in _SUMS}
    groups = rows.order_by().values(*by).annotate(**sums)
    groups = groups.order_by(-(F("sum_prompt_tokens") + F("sum_completion_tokens")), *by)
    return [
        {name: group[name] for name in by} | {name: group[f"sum_{name}"] for name in _SUMS}
        for group in groups
    ]


def days_ago(num_days: int) -> date:
    return budgets.today() - timedelta(days=num_days)
