"""The settings page of one's own usage."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from chat import usage
from chat.budgets import today
from chat.db import in_db
from chat.pricing import has_prices
from chat.rights import Rights, rights_of
from chat.usage_models import Usage

_TITLES = {
    "tokens_per_day": gettext_lazy("Tokens today"),
    "tokens_per_month": gettext_lazy("Tokens this month"),
    "cost_per_month": gettext_lazy("Cost this month"),
}


async def usage_page(request: HttpRequest) -> HttpResponse:
    return render(request, "settings/usage.html", await in_db(_context)(rights_of(request)))


def _context(rights: Rights) -> dict[str, Any]:
    rows = Usage.objects.filter(owner=rights.user.pk)
    month = usage.entries(rows, today().replace(day=1), today())
    gauges = [
        {"title": _TITLES[gauge.name], "gauge": gauge, "share": min(1.0, gauge.share)}
        for gauge in usage.gauges(rights)
    ]
    return {
        "heading": gettext("Usage"),
        "here": "usage",
        "tier": rights.user.tier,
        "gauges": gauges,
        "models": usage.summed(month, ["model"]),
        "days": sorted(usage.summed(month, ["day"]), key=lambda each: each["day"], reverse=True),
        "has_prices": has_prices(),
        "currency": settings.CURRENCY,
    }
