"""Times, in UTC until `static/js/local-times.js` says them by the reader's clock."""

from datetime import UTC, datetime

from django import template
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil

register = template.Library()


@register.filter
def local_day(value: datetime) -> SafeString:
    return _element(value, date_format(value, "DATE_FORMAT"), "day")


@register.filter
def local_time(value: datetime) -> SafeString:
    return _element(value, f"{date_format(value, 'DATETIME_FORMAT')} UTC", "time")


@register.filter
def time_since(value: datetime) -> SafeString:
    return _element(value, timesince(value), "span")


@register.filter
def time_until(value: datetime) -> SafeString:
    return _element(value, timeuntil(value), "span")


def _element(value: datetime, words: str, shown: str) -> SafeString:
    at = value.astimezone(UTC).isoformat(timespec="seconds")
    return format_html('<time datetime="{}" data-shown="{}">{}</time>', at, shown, words)
