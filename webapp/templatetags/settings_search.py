"""`{% settings_search %}`: a field that finds a setting, and all that it may find."""

from typing import Any

from django import template

from webapp.settings_places import PLACES

register = template.Library()


@register.inclusion_tag("settings/_search.html")
def settings_search() -> dict[str, Any]:
    return {"places": PLACES}
