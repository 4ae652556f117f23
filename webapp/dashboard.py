"""The start page of the admin console: people, answers, tokens and cost of the last thirty days."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import F, Sum
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils import timezone

from chat import service, usage
from chat.budgets import today
from chat.models import Usage
from chat.pricing import has_prices
from moderation.away import away_since
from webapp.anomalies import unusual
from webapp.charts import Series, bars
from webapp.models import User
from webapp.tenancy import as_system

NUM_DAYS = 30
NUM_LISTED = 8
AWAY_WITHIN = timedelta(hours=1)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """What unfold's index shows beside the lists of models."""
    first = usage.days_ago(NUM_DAYS - 1)
    days = [first + timedelta(days=number) for number in range(NUM_DAYS)]
    costs_money = has_prices()
    with as_system():  # sums over all users, no user's content
        rows = usage.entries(Usage.objects.all(), first, today())
        by_day = {group["day"]: group for group in usage.summed(rows, ["day"])}
        context |= {
            "cards": _cards(days, by_day, costs_money),
            "charts": _charts(days, by_day, costs_money),
            "top_users": _top_users(first),
            "top_models": usage.summed(rows, ["model"])[:NUM_LISTED],
            "unusual": unusual()[:NUM_LISTED],
            "model_problems": service.problems_now(),
            "away": away_since(timezone.now() - AWAY_WITHIN),
            "num_days": NUM_DAYS,
            "workers": service.worker_states(),
            "gpus": gpus(),
            "currency": settings.CURRENCY,
            "has_prices": costs_money,
        }
    return context


def gpus() -> list[dict[str, Any]]:
    """A row for each GPU that the driver tells of; what it does not tell is None."""
    return [
        {
            "reading": reading,
            "used_percent": 100 * reading.used_bytes / reading.total_bytes,
            "busy_percent": None if reading.utilisation is None else 100 * reading.utilisation,
            "models": sorted(
                {one.model for one in service.worker_states() if reading.uuid in one.gpus}
            ),
        }
        for reading in service.gpu_readings()
    ]


def style_sheet(request: HttpRequest) -> str:
    """What unfold's own pages lack."""
    return static("css/admin.css")


def _cards(days: list[date], by_day: dict[date, Any], costs_money: bool) -> list[dict[str, Any]]:
    week_ago = timezone.now() - timedelta(days=7)
    asked_lately = Usage.objects.filter(day__gt=usage.days_ago(7)).values("owner").distinct()
    cards: list[dict[str, Any]] = [
        {
            "title": "Users",
            "value": User.objects.filter(is_active=True).count(),
            "note": f"{User.objects.filter(date_joined__gte=week_ago).count()} new in 7 days",
        },
        {"title": "Asked in 7 days", "value": asked_lately.count(), "note": "users"},
        {
            "title": "Answers today",
            "value": _of(by_day, days[-1], "num_requests"),
            "note": f"{sum(_of(by_day, day, 'num_requests') for day in days):,} in {NUM_DAYS} days",
        },
        {
            "title": "Tokens today",
            "value": _tokens(by_day, days[-1]),
            "note": f"{sum(_tokens(by_day, day) for day in days):,} in {NUM_DAYS} days",
        },
    ]
    if costs_money:
        total = sum((_cost(by_day, day) for day in days), Decimal(0))
        cost = _cost(by_day, days[-1])
        note = f"{total:.2f} {settings.CURRENCY} in {NUM_DAYS} days"
        cards.append({"title": f"{settings.CURRENCY} today", "value": f"{cost:.2f}", "note": note})
    return cards


def _charts(days: list[date], by_day: dict[date, Any], costs_money: bool) -> list[dict[str, str]]:
    def series(label: str, name: str, shade: int) -> Series:
        return Series(label, [_of(by_day, day, name) for day in days], shade)

    read, written = (
        series("Read", "prompt_tokens", 300),
        series("Written", "completion_tokens", 600),
    )
    charts = [
        bars("Answers by day", "answers", days, [series("Answers", "num_requests", 500)]),
        bars("Tokens by day", "tokens", days, [read, written]),
    ]
    if costs_money:
        unit = settings.CURRENCY
        costs = Series(unit, [float(_cost(by_day, day)) for day in days], 500)
        charts.append(bars(f"{unit} by day", unit, days, [costs]))
    return charts


def _top_users(first: date) -> list[dict[str, Any]]:
    rows = Usage.objects.filter(day__gte=first).values("owner", "owner__email")
    sums = rows.annotate(
        tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
        answers=Sum("num_requests"),
        total=Sum("cost"),
    )
    return list(sums.order_by("-tokens")[:NUM_LISTED])


def _of(by_day: dict[date, Any], day: date, name: str) -> int:
    return int(by_day[day][name]) if day in by_day else 0


def _tokens(by_day: dict[date, Any], day: date) -> int:
    return _of(by_day, day, "prompt_tokens") + _of(by_day, day, "completion_tokens")


def _cost(by_day: dict[date, Any], day: date) -> Decimal:
    return Decimal(by_day[day]["cost"]) if day in by_day else Decimal(0)
