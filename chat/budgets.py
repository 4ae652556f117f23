"""Tokens and money of days and months: held when an answer begins (holds.py), settled when it ends.

An answer may begin while what is spent and held is below every limit; then it holds the most that it
can take. Of several that begin together, all but the largest have to fit. So a budget is passed by one
message at most, however many ask at once. Synchronous; each function runs inside the caller's
transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from chat.delivered import Delivered
from chat.engine import known_context_tokens
from chat.errors import BeyondBudget, BudgetSpent
from chat.events import Failed, Finished, LogEvent, Phase, Refused, RunUsage, Stopped
from chat.prices import Price
from chat.rights import Budget, Rights

WAIT_S = 5.0  # until something under way may have ended
USUAL_CONTEXT_TOKENS = 32_768  # of a model that has not told how much it takes

_SPENT = """
SELECT
    day_tokens, month_tokens, month_cost, key_day_tokens, held_tokens, held_cost, key_held_tokens
FROM chat_spent(%s, %s, %s, %s)
"""
_SETTLE = """
WITH freed AS (DELETE FROM chat_reservation WHERE id = ANY(%(ids)s))
INSERT INTO chat_usage AS usage (
    owner_id, day, model, api_key_id,
    num_requests, prompt_tokens, cached_tokens, completion_tokens, engine_ms, cost
) VALUES (
    %(owner)s, %(day)s, %(model)s, %(key)s,
    %(num)s, %(prompt)s, %(cached)s, %(completion)s, %(engine_ms)s, %(cost)s
)
ON CONFLICT (owner_id, day, model, api_key_id) DO UPDATE SET
    num_requests = usage.num_requests + excluded.num_requests,
    prompt_tokens = usage.prompt_tokens + excluded.prompt_tokens,
    cached_tokens = usage.cached_tokens + excluded.cached_tokens,
    completion_tokens = usage.completion_tokens + excluded.completion_tokens,
    engine_ms = usage.engine_ms + excluded.engine_ms,
    cost = usage.cost + excluded.cost
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one user, by now: tokens and money that are spent, and that answers under way hold."""

    day_tokens: int
    month_tokens: int
    month_cost: Decimal
    key_day_tokens: int
    held_tokens: int
    held_cost: Decimal
    key_held_tokens: int

    def with_held(self, tokens: int, cost: Decimal) -> "Spent":
        """As it is once an answer of the same key holds so much more."""
        return replace(
            self,
            held_tokens=self.held_tokens + tokens,
            held_cost=self.held_cost + cost,
            key_held_tokens=self.key_held_tokens + tokens,
        )


@dataclass(frozen=True, slots=True)
class Charge:
    """What an answer took."""

    usage: RunUsage
    engine_ms: float = 0.0
    cost: Decimal = Decimal(0)

    @property
    def num_tokens(self) -> int:
        return self.usage.prompt_tokens + self.usage.completion_tokens


def spent_by(rights: Rights) -> Spent:
    """One query."""
    values = [rights.user.pk, rights.api_key_id, timezone.now(), today()]
    with connection.cursor() as cursor:
        cursor.execute(_SPENT, values)
        return Spent(*cursor.fetchone())


def check(
    budget: Budget,
    spent: Spent,
    prices: Mapping[str, Price] = MappingProxyType({}),
    models: Sequence[str] = (),
    extra_tokens: int = 0,
) -> None:
    """Raises BudgetSpent where a limit is reached, by what is spent, with what is held, or with what is
    asked for of these models beyond one answer."""
    extra_cost = max((at_most(prices, model, extra_tokens) for model in models), default=Decimal(0))
    for limit, used, held, extra, words in (
        (budget.tokens_per_day, spent.day_tokens, spent.held_tokens, extra_tokens, _DAY),
        (
            budget.key_tokens_per_day,
            spent.key_day_tokens,
            spent.key_held_tokens,
            extra_tokens,
            _KEY_DAY,
        ),
        (budget.tokens_per_month, spent.month_tokens, spent.held_tokens, extra_tokens, _MONTH),
        (budget.cost_per_month, spent.month_cost, spent.held_cost, extra_cost, _COST),
    ):
        if limit is None or used + held + extra < limit:
            continue
        if used + held < limit:
            text = gettext("So many answers may take more than is left of your budget.")
            if extra >= limit:
                raise BeyondBudget(text)
            raise BudgetSpent(text, WAIT_S if used + extra < limit else _until_anew(words))
        if used < limit:
            text = gettext(
                "Answers under way hold what is left of your budget. Wait for one to end."
            )
            raise BudgetSpent(text, WAIT_S)
        facts = {
            "n": f"{limit:,}",
            "currency": settings.CURRENCY,
            "until": _anew_at(words).date().isoformat(),
        }
        raise BudgetSpent(words % facts, _until_anew(words))


def _anew_at(words: Any) -> datetime:
    return next_day() if words in (_DAY, _KEY_DAY) else next_month()


def _until_anew(words: Any) -> float:
    return (_anew_at(words) - timezone.now()).total_seconds()


_DAY = gettext_lazy(
    "Your %(n)s tokens for today are used up. There are new ones on %(until)s (UTC)."
)
_KEY_DAY = gettext_lazy(
    "This key's %(n)s tokens for today are used up. There are new ones on %(until)s (UTC)."
)
_MONTH = gettext_lazy(
    "Your %(n)s tokens for this month are used up. There are new ones on %(until)s."
)
_COST = gettext_lazy(
    "Your %(n)s %(currency)s for this month are used up. There is more on %(until)s."
)


def settle(
    run_id: UUID, *, owner_id: Any, api_key_id: int | None, model: str, charge: Charge
) -> None:
    """Enter what an answer took, and let go what was held for it. One statement."""
    settle_all({run_id: charge}, owner_id=owner_id, api_key_id=api_key_id, model=model)


def settle_all(
    charges: Mapping[UUID, Charge], *, owner_id: Any, api_key_id: int | None, model: str
) -> None:
    """The same of several answers of one model to one user with one key: they share a row."""
    charge = added(list(charges.values()))
    values = {
        "ids": list(charges),
        "num": len(charges),
        "owner": owner_id,
        "day": today(),
        "model": model,
        "key": api_key_id,
        "prompt": charge.usage.prompt_tokens,
        "cached": charge.usage.cached_tokens,
        "completion": charge.usage.completion_tokens,
        "engine_ms": charge.engine_ms,
        "cost": charge.cost,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, values)


def charge_of(
    price: Price | None,
    events: Iterable[LogEvent],
    reading: Phase | None = None,
    *,
    is_elsewhere: bool = False,
) -> Charge:
    """Of an answer's events. One that failed costs the tokens that were delivered; one that was left,
    what had been read for it, too (`reading`: Reading.phase, which also tells whether another server has
    read). `is_elsewhere` says the same where there is no phase."""
    delivered, end = Delivered(is_elsewhere=is_elsewhere), None
    if reading is not None:
        delivered.hear(reading)
    for event in events:
        delivered.hear(event)
        end = event
    num_tokens = delivered.num_tokens
    if isinstance(end, Finished | Stopped):
        return priced(price, end.usage, end.timings.engine_ms)
    if reading is None or isinstance(end, Failed | Refused):
        return priced(price, RunUsage(completion_tokens=num_tokens))
    return priced(price, RunUsage(reading.done, reading.cached, num_tokens))


def together(price: Price | None, charges: Sequence[Charge]) -> Charge:
    """Of several answers to one prompt, which counts once."""
    usages = [charge.usage for charge in charges]
    usage = RunUsage(
        prompt_tokens=max((usage.prompt_tokens for usage in usages), default=0),
        cached_tokens=max((usage.cached_tokens for usage in usages), default=0),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
    )
    return priced(price, usage, sum(charge.engine_ms for charge in charges))


def added(charges: Sequence[Charge]) -> Charge:
    """Of answers that have nothing in common."""
    usages = [charge.usage for charge in charges]
    usage = RunUsage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
    )
    cost = sum((charge.cost for charge in charges), Decimal(0))
    return Charge(usage, sum(charge.engine_ms for charge in charges), cost)


def priced(price: Price | None, usage: RunUsage, engine_ms: float = 0.0) -> Charge:
    if price is None:
        return Charge(usage, engine_ms)
    cost = price.of(
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        engine_ms=engine_ms,
    )
    return Charge(usage, engine_ms, cost)


def at_most(prices: Mapping[str, Price], model: str, tokens: int) -> Decimal:
    """What so many tokens of a model can cost; nothing, where it has no price."""
    return prices[model].at_most(tokens) if model in prices else Decimal(0)


def most_tokens(rights: Rights, model: str) -> int:
    """What one answer can take, prompt included."""
    of_model = known_context_tokens(model) or USUAL_CONTEXT_TOKENS
    return min(of_model, rights.user.tier.context_tokens or of_model)


def today() -> date:
    return datetime.now(UTC).date()


def next_day() -> datetime:
    """When the tokens of a day are there anew."""
    return datetime.combine(today() + timedelta(days=1), datetime.min.time(), UTC)


def next_month() -> datetime:
    """When those of a month are, and its money."""
    first = (today().replace(day=1) + timedelta(days=32)).replace(day=1)
    return datetime.combine(first, datetime.min.time(), UTC)
