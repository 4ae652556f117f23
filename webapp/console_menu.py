"""The words of the console's menu, wherever else a page of it is named or looked for."""

from functools import cache
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from webapp.console_settings import NAVIGATION


@cache
def _places() -> dict[str, tuple[str, str]]:
    """Address of a list -> the part of the menu that it is in, and its own title."""
    return {
        str(item["link"]): (group["title"], item["title"])
        for group in NAVIGATION
        for item in group["items"]
    }


def as_in_menu(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """unfold's breadcrumbs, `{"title", "link"}` each: application, list, row."""
    place = next(
        (_places()[link] for one in parts if (link := str(one.get("link"))) in _places()), None
    )
    if place is None or len(parts) < 2:
        return parts
    part, title = place
    app, rows, *others = parts
    others = [one | {"title": heading(one["title"])} for one in others]
    return [app | {"title": part, "link": ""}, rows | {"title": title}, *others]


def heading(row: Any) -> Any:
    """What a row is called above its page: by its ModelAdmin's `heading`, where it has one."""
    page = admin.site._registry.get(type(row)) if isinstance(row, Model) else None
    return page.heading(row) if page is not None and hasattr(page, "heading") else row


def search(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """Of the menu: what of it has these words in its name, that of its part, or its address."""
    words = request.GET.get("s", "").strip().lower()
    if not words:
        return HttpResponse()
    site: Any = admin.site
    found = [
        {"title": item["title"], "description": group["title"], "link": item["link"]}
        for group in site.get_sidebar_list(request)
        for item in group["items"]
        if item["has_permission"] and words in _names(group, item)
    ]
    context = {"results": found, "words": words}
    return TemplateResponse(request, "unfold/helpers/search_results.html", context)


def _names(group: dict[str, Any], item: dict[str, Any]) -> str:
    name = str(item["link"]).rstrip("/").rpartition("/")[2]
    return f"{group['title']} {item['title']} {name}".lower()
