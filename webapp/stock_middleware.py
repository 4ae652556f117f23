"""Django's middleware without the thread hops.

The stock classes run each of their hooks in a thread when the server is asynchronous. These hooks
only compute, so they can run on the event loop; only a changed session is written in a thread.
"""

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.middleware import common, csrf
from django.utils.deprecation import MiddlewareMixin

from webapp.api_errors import error_at, is_api_path

_PROBED = ("/healthz", "/readyz")


class _OnTheLoop(MiddlewareMixin):
    process_request: Callable[..., Any]
    process_response: Callable[..., Any]

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.process_request(request)
        if response is None:
            response = await self.get_response(request)  # type: ignore[misc]
        return await self.finish(request, response)

    async def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        done: HttpResponseBase = self.process_response(request, response)
        return done


class SessionMiddleware(_OnTheLoop, sessions.SessionMiddleware):
    async def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.session.modified:
            saved: HttpResponseBase = await sync_to_async(self.process_response)(request, response)
            return saved
        return await super().finish(request, response)


class CommonMiddleware(_OnTheLoop, common.CommonMiddleware):
    """Also gives a wrong method under /v1 and /api the shape of every other error there, and lets probes
    in, which know this machine by its address alone."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path_info in _PROBED else super().process_request(request)

    async def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code == 405 and is_api_path(request.path_info):
            allowed = response.headers["Allow"]
            message = f"{request.method} is not possible here; {allowed} is."
            response = error_at(request.path_info, 405, "method_not_allowed", message)
            response.headers["Allow"] = allowed
        return await super().finish(request, response)


class MessageMiddleware(_OnTheLoop, messages.MessageMiddleware):
    """Needs no I/O because the messages are kept in a cookie (settings.MESSAGE_STORAGE)."""


class CsrfMiddleware(_OnTheLoop, csrf.CsrfViewMiddleware):
    """Also for API views, which are exempt by themselves: a cookie needs a token everywhere.

    A foreign page cannot send an API key or an access token, so requests with one need none. What
    takes a cookie of its own looks at the Origin itself (webapp/tokens_api.py).
    """

    async def process_view(  # type: ignore[override]
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        method = getattr(request, "auth_method", "none")
        is_api = is_api_path(request.path_info)
        if method in ("key", "token") or (is_api and method == "none"):
            return None  # nobody in an API gets 401, which says more
        return super().process_view(request, _not_exempt if is_api else view, args, kwargs)


def _not_exempt() -> HttpResponseBase:
    """Stands for a view without csrf_exempt; never called."""
    raise AssertionError
