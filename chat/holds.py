"""What runs hold of a budget while they are under way: the most that each may take.

Synchronous; the caller's transaction holds the user's row, so that of many at once each sees what the
others hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, Sum
from django.utils import timezone

from chat.budgets import Spent, at_most, check, most_tokens, spent_by, today
from chat.concurrency import num_free
from chat.errors import BudgetSpent, ChatError, TooManyRuns
from chat.prices import Price
from chat.pricing import prices_of
from chat.rights import Rights
from chat.usage_models import Reservation, Usage

HOLD_S = 1800.0  # how long a run of a chat that never settles keeps what it held
_ROOM = (
    4  # times as long as usual an answer may take our engine, beside the most tokens that it can
)


@dataclass(frozen=True, slots=True)
class Hold:
    """What one run may take at most. `beyond_one` of its tokens are those of all but the largest of its
    answers, where it is several. With `leased_until` it is let go then, where that is not set anew: its
    process has died. Where it `is_run`, it counts until then among the answers that are written at the
    same time (concurrency.py). Where it is for another run, which waits for it, it is `within` that one,
    and does not wait for what that one holds."""

    run_id: UUID
    model: str
    tokens: int
    beyond_one: int = 0
    leased_until: datetime | None = None
    is_run: bool = False
    within: UUID | None = None


def reserve(
    rights: Rights,
    run_ids: Sequence[UUID],
    models: Sequence[str],
    *,
    leased_until: datetime | None = None,
) -> None:
    """Hold for each run the most that it can take; with a lease each counts as an answer. Raises
    BudgetSpent; then nothing is held."""
    budget, is_run = rights.budget(), leased_until is not None
    if budget.is_endless and not is_run:
        return
    holds = [
        Hold(
            run_id,
            model,
            most_tokens(rights, model),
            leased_until=leased_until,
            is_run=is_run,
        )
        for run_id, model in zip(run_ids, models, strict=True)
    ]
    if budget.is_endless:
        return _insert(rights, [(hold, Decimal(0)) for hold in holds])
    spent, mosts = spent_by(rights), [hold.tokens for hold in holds]
    prices = prices_of(models)
    check(budget, spent, prices, models, sum(mosts) - max(mosts))
    held = []
    for hold in holds:
        cost = _most_cost(rights, spent, prices, hold)
        held.append((hold, cost))
        spent = spent.with_held(hold.tokens, cost)
    _insert(rights, held)


def rows_for_one(
    rights: Rights, spent: Spent, prices: Mapping[str, Price], run_id: UUID, model: str
) -> list[Reservation]:
    """What `reserve` would insert for one run, by what is at hand; not saved. Raises BudgetSpent."""
    budget = rights.budget()
    if budget.is_endless:
        return []
    check(budget, spent, prices, [model])
    hold = Hold(run_id, model, most_tokens(rights, model))
    values = _values(hold, _most_cost(rights, spent, prices, hold))
    return [Reservation(owner=rights.user, api_key_id=rights.api_key_id, **values)]


def hold_each(rights: Rights, holds: Sequence[Hold]) -> list[ChatError | None]:
    """Hold what of these there is room for, in the budget and among the answers at the same time, each
    beside those before it; what there is none for is told. Four queries at most."""
    budget, prices = rights.budget(), prices_of(hold.model for hold in holds)
    spent = None if budget.is_endless else spent_by(rights)
    free = num_free(rights)
    refusals: list[ChatError | None] = []
    held = []
    for hold in holds:
        cost = Decimal(0)
        try:
            if hold.is_run and free < 1:
                raise TooManyRuns(rights.user.tier.concurrent_runs)
            if spent is not None:
                others = _without(spent, hold.within) if hold.within else spent
                check(budget, others, prices, [hold.model], hold.beyond_one)
                cost = _most_cost(rights, spent, prices, hold)
                spent = spent.with_held(hold.tokens, cost)
        except (TooManyRuns, BudgetSpent) as refusal:
            refusals.append(refusal)
            continue
        free -= hold.is_run
        refusals.append(None)
        if hold.is_run or spent is not None:
            held.append((hold, cost))
    _insert(rights, held)
    return refusals


def _without(spent: Spent, run_id: UUID) -> Spent:
    """As it is but for what a run holds."""
    row = Reservation.objects.filter(pk=run_id).first()
    return spent.with_held(-row.tokens, -row.cost) if row else spent


def _most_cost(rights: Rights, spent: Spent, prices: Mapping[str, Price], hold: Hold) -> Decimal:
    """What a run can cost. Tokens have a most; the time of our engine has none, and is taken for as long
    as the user's answers by this model were this month, with room. Before the first one nobody knows:
    then all that is left is held, and a second answer waits for what the first one tells."""
    limit, price = rights.budget().cost_per_month, prices.get(hold.model)
    cost = at_most(prices, hold.model, hold.tokens)
    if price is None or not price.engine_s or limit is None:
        return cost
    left = max(cost, limit - spent.month_cost - spent.held_cost)
    pace_s = _engine_s_per_token(rights.user, hold.model)
    return left if pace_s is None else cost + price.engine_s * hold.tokens * pace_s * _ROOM


def _engine_s_per_token(user: Any, model: str) -> Decimal | None:
    """Of this month; None: the user had no answer yet."""
    rows = Usage.objects.filter(owner_id=user.pk, model=model, day__gte=today().replace(day=1))
    sums = rows.aggregate(
        ms=Sum("engine_ms"), tokens=Sum(F("prompt_tokens") + F("completion_tokens"))
    )
    if not sums["tokens"] or not sums["ms"]:
        return None
    pace_s: Decimal = Decimal(sums["ms"]) / 1000 / sums["tokens"]
    return pace_s


_COLUMNS = ("id", "tokens", "cost", "expires_at", "alive_until")
_INSERT = """
    INSERT INTO chat_reservation
        (owner_id, api_key_id, id, tokens, cost, expires_at, alive_until)
    SELECT %s, %s, held.*
    FROM unnest(%s::uuid[], %s::bigint[], %s::numeric[], %s::timestamptz[], %s::timestamptz[]) AS held
"""


def _insert(rights: Rights, held: Sequence[tuple[Hold, Decimal]]) -> None:
    """As bulk_create() would, whose rows and statement take longer to be made than to be run."""
    if not held:
        return
    rows = [_values(hold, cost) for hold, cost in held]
    columns = [[row[name] for row in rows] for name in _COLUMNS]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [rights.user.pk, rights.api_key_id, *columns])


def _values(hold: Hold, cost: Decimal) -> dict[str, Any]:
    return {
        "id": hold.run_id,
        "tokens": hold.tokens,
        "cost": cost,
        "expires_at": hold.leased_until or timezone.now() + timedelta(seconds=HOLD_S),
        "alive_until": hold.leased_until if hold.is_run else None,
    }


def hold_on(run_id: UUID) -> None:
    """A run of a chat takes longer than anybody thought: it goes on to hold what it holds."""
    expires_at = timezone.now() + timedelta(seconds=HOLD_S)
    Reservation.objects.filter(pk=run_id).update(expires_at=expires_at)


def let_go(run_id: UUID) -> None:
    """Of what was held for a run that never began."""
    Reservation.objects.filter(pk=run_id).delete()


def let_go_of_expired() -> None:
    """Of what was held for answers that died without a word."""
    now = timezone.now()
    Reservation.objects.filter(Q(expires_at__lt=now) | Q(alive_until__lt=now)).delete()
