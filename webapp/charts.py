"""Bars by day on the console's start page, drawn by the Chart.js that unfold brings."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

_GREY = "#7c8494"
"""Of the axes' words: 3 to 1 at least on white and on the dark console's ground."""


@dataclass(frozen=True)
class Series:
    label: str
    values: Sequence[float]
    shade: int
    """Of unfold's primary colour."""


def bars(title: str, unit: str, days: Sequence[date], series: Sequence[Series]) -> dict[str, str]:
    """What templates/admin/_chart.html shows: of each day one bar, on which the series stand one above
    the other."""
    labels = [f"{day:%-d %b}" for day in days]
    data = {"labels": labels, "datasets": [_dataset(one) for one in series]}
    return {
        "title": title,
        "data": json.dumps(data),
        "options": json.dumps(_options(unit, has_legend=len(series) > 1)),
        "words": f"{title}. {'. '.join(_words(one, unit, labels) for one in series)}.",
    }


def _dataset(one: Series) -> dict[str, Any]:
    return {
        "label": one.label,
        "data": list(one.values),
        "backgroundColor": f"var(--color-primary-{one.shade})",
        "hoverBackgroundColor": "#d97706",  # Chart.js cannot darken oklch by itself
        "borderRadius": 2,
        "maxBarThickness": 16,
    }


def _options(unit: str, *, has_legend: bool) -> dict[str, Any]:
    ticks = {"color": _GREY}
    return {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "interaction": {"mode": "index", "intersect": False},
        "plugins": {
            "legend": {
                "display": has_legend,
                "align": "end",
                "labels": {"color": _GREY, "boxHeight": 8, "boxWidth": 8},
            },
        },
        "scales": {
            "x": {
                "stacked": True,
                "ticks": {**ticks, "maxRotation": 0, "autoSkipPadding": 12},
                "grid": {"display": False},
            },
            "y": {
                "stacked": True,
                "beginAtZero": True,
                "title": {"display": True, "text": unit, "color": _GREY},
                "ticks": {**ticks, "maxTicksLimit": 5, "format": {"notation": "compact"}},
                "grid": {"display": True},
            },
        },
    }


def _words(one: Series, unit: str, labels: Sequence[str]) -> str:
    """For who does not see them."""
    most = max(one.values)
    total = f"{one.label}: {round(sum(one.values), 2):,} {unit} in {len(labels)} days"
    return f"{total}, most on {labels[list(one.values).index(most)]}" if most else total
