"""REST of one's own usage under /api."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router

from chat import budgets, usage
from chat.db import in_db
from chat.errors import BadRequest
from chat.rights import Rights, rights_of
from chat.usage_models import Usage

router = Router()

MAX_DAYS = 366
By = Literal["day", "model", "key"]
AnyBy = Literal["day", "model", "key", "owner"]
_FIELDS: dict[AnyBy, str] = {
    "day": "day",
    "model": "model",
    "key": "api_key_id",
    "owner": "owner__email",
}


@router.get("/usage")
async def show_usage(
    request: HttpRequest,
    since: date | None = None,
    until: date | None = None,
    by: By = "day",
) -> dict[str, Any]:
    """What your answers took in these days (UTC), 30 by default, and how your budgets stand."""
    since, until = checked_days(since, until)
    return await in_db(_own_usage)(rights_of(request), since, until, by)


def _own_usage(rights: Rights, since: date, until: date, by: By) -> dict[str, Any]:
    rows = Usage.objects.filter(owner=rights.user.pk)
    budgets_now = [gauge_value(gauge) for gauge in usage.gauges(rights)]
    return {"budgets": budgets_now, **usage_value(rows, since, until, by)}


def gauge_value(gauge: usage.Gauge) -> dict[str, Any]:
    """`share` is what of it is used, from 0 to 1 and a little beyond."""
    return {
        "name": gauge.name,
        "used": _plain(gauge.used),
        "limit": _plain(gauge.limit),
        "share": gauge.share,
        "resets_at": gauge.resets_at,
    }


def usage_value(rows: QuerySet[Usage], since: date, until: date, by: AnyBy) -> dict[str, Any]:
    """The rows of these days, summed by one of their facts."""
    groups = usage.summed(usage.entries(rows, since, until), [_FIELDS[by]])
    return {
        "since": since,
        "until": until,
        "currency": settings.CURRENCY,
        "items": [
            {by if name == _FIELDS[by] else name: _plain(value) for name, value in group.items()}
            for group in groups
        ],
    }


def checked_days(since: date | None, until: date | None) -> tuple[date, date]:
    """Raises BadRequest for days that are none, or too many."""
    until = until or budgets.today()
    since = since or usage.days_ago(29)
    if not 0 <= (until - since).days < MAX_DAYS:
        raise BadRequest(f"'since' comes before 'until', by at most {MAX_DAYS} days.")
    return since, until


def _plain(value: Any) -> Any:
    """Money as text, exactly."""
    return f"{value:f}" if isinstance(value, Decimal) else value
