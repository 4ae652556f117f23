"""The APIs' descriptions as a page: ninja's own loads its scripts from elsewhere."""

import json
import re
from functools import cache
from itertools import groupby
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from chat import openai_api, rest
from chat.described_api import DescribedApi


async def show_api(request: HttpRequest) -> HttpResponse:
    apis = [{"prefix": prefix, "groups": _groups(prefix)} for prefix in ("/v1/", "/api/")]
    context = {"heading": gettext("API"), "here": "keys", "apis": apis}
    return render(request, "settings/api.html", context)


@login_not_required
async def to_page(request: HttpRequest) -> HttpResponse:
    """Where other servers have theirs."""
    return redirect("api")


@cache
def _groups(prefix: str) -> list[dict[str, Any]]:
    """Operations by the first part of their path; they change with the code only."""
    api: DescribedApi = {"/v1/": openai_api.api, "/api/": rest.api}[prefix]
    paths = api.get_openapi_schema(path_prefix=prefix)["paths"]
    operations = [
        _operation(path, method, described)
        for path, methods in paths.items()
        for method, described in methods.items()
    ]
    operations.sort(key=lambda each: (each["group"], each["path"]))
    groups = groupby(operations, key=lambda each: each["group"])
    return [{"name": name, "operations": list(each)} for name, each in groups]


def _operation(path: str, method: str, described: dict[str, Any]) -> dict[str, Any]:
    first, *more = _sentences(described.get("description", ""))
    body = described.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = body.get("example")
    return {
        "group": path.split("/")[2],
        "method": method.upper(),
        "path": path,
        "title": _marked(first.removesuffix(".")),
        "more": _marked(" ".join(more)),
        "parameters": [
            {"name": each["name"], "place": each["in"], "is_required": each.get("required")}
            for each in described.get("parameters", [])
        ],
        "example": json.dumps(example, indent=2, ensure_ascii=False) if example else "",
    }


def _sentences(text: str) -> list[str]:
    """Of a docstring, without those for who reads the code."""
    found = re.split(r"(?<=\.)\s+", text)
    return [one for one in found if not one.startswith("Raises ")] or [""]


def _marked(text: str) -> SafeString:
    """What stands between backticks, as code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped
