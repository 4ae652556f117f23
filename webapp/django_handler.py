"""Django behind ASGI, for requests that it cannot even read."""

from collections.abc import Mapping
from typing import IO, Any

import django
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from webapp.request_threads import RequestThread, end_without_thread


class Handler(ASGIHandler):
    """Answers 400 where a header is not what Django's parser of headers expects; Django's own handler
    lets the error go through, as a 500 at every address."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async with RequestThread():
            await super().__call__(scope, receive, send)

    async def send_response(self, response: HttpResponseBase, send: Any) -> None:
        try:
            await super().send_response(response, send)
        finally:
            end_without_thread()

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        try:
            return super().create_request(scope, body_file)
        except (ValueError, LookupError):
            return None, _refusal(scope["path"])


def django_handler() -> Handler:
    """As django.core.asgi's get_asgi_application() does."""
    django.setup(set_prefix=False)
    # A request has a thread of its own when it first needs one, in which the one before has left nothing
    # open (and queries are counted for nobody). Without these it may never be needed.
    request_started.disconnect(close_old_connections)
    request_started.disconnect(reset_queries)
    return Handler()


def _refusal(path: str) -> HttpResponse:
    # Not earlier: it imports models, which setup() makes possible.
    from webapp.api_errors import error_at, is_api_path

    text = "A header of the request was not understood."
    if is_api_path(path):
        return error_at(path, 400, "bad_request", text)
    return HttpResponse(text, status=400, content_type="text/plain; charset=utf-8")
