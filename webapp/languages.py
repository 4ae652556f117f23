"""Which language a page speaks: the user's choice, else this browser's, else what it asks for.

The admin console is written in English alone.
"""

import json
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST

from webapp.api_errors import is_api_path
from webapp.catalogs import po_path, read_po
from webapp.models import User

_YEAR_S = 365 * 24 * 3600

CONSOLE_LANGUAGE = "en-gb"
"""Whose formats of dates and numbers (webapp/formats/) no other page has."""


class LanguageMiddleware:
    """Behind authentication: a user's own language counts first. The APIs speak English.

    Django's own runs in a thread, and knows no user.
    """

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith("/v1/"):
            return await self.get_response(request)
        is_console = request.path_info.startswith("/admin/")
        language = CONSOLE_LANGUAGE if is_console else language_of(request)
        with translation.override(language):
            response = await self.get_response(request)
        if not is_api_path(request.path_info):
            response.headers.setdefault("Content-Language", language)
            patch_vary_headers(response, ("Accept-Language",))
        return response


def language_of(request: Any) -> str:
    """Of a request, or of what has its user, cookies and headers."""
    chosen = getattr(request.user, "language", "")
    if chosen in dict(settings.LANGUAGES):
        return str(chosen)
    return translation.get_language_from_request(request)


@require_POST
@login_not_required
async def choose_language(request: HttpRequest) -> HttpResponse:
    """Keep the language with the user and in this browser; "" is: as the browser asks."""
    language = request.POST.get("language", "")
    response = HttpResponseRedirect("/settings/#general")
    if language and language not in dict(settings.LANGUAGES):
        return response
    if isinstance(request.user, User):
        request.user.language = language
        await request.user.asave(update_fields=["language"])
    cookie: dict[str, Any] = {"secure": settings.HTTPS, "httponly": True, "samesite": "Lax"}
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME, language, max_age=_YEAR_S if language else 0, **cookie
    )
    return response


@cache
def words_json(language: str) -> str:
    """The translations for the page's modules, by their English: a text, or a list of plural forms."""
    if language == settings.LANGUAGE_CODE or language not in dict(settings.LANGUAGES):
        return "{}"
    entries = read_po(po_path(language, "djangojs")).entries.values()
    words = {e.text: e.forms if e.plural else e.forms[0] for e in entries if e.is_translated}
    return json.dumps(words, ensure_ascii=False)
