"""How much may be asked of the two APIs: every call counts, and one that asks a model counts double.

What asks a model under /v1 is a POST, but for those that only count tokens; it finds room in the
windows of the user's tier and of the key, and its response says what is left. All calls together have
a window of their own, wide enough for every page, against programs that have run wild. Sockets count
what they ask for themselves.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chat.admission import check_requests, headers_of
from chat.errors import TooManyRequests
from chat.rights import rights_of
from chat.windows import Admission, Window, admit
from webapp.api_errors import error_at, is_api_path

CALLS_PER_MINUTE = 1200
_COUNTS_ONLY = ("/v1/tokenize", "/v1/messages/count_tokens", "/v1/responses/input_tokens")


class LimitsMiddleware:
    """Refuses with 429 and Retry-After; says on every response of /v1 how the caller stands."""

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = await self.get_response(request)
        for name, value in getattr(request, "limit_headers", {}).items():
            response.headers.setdefault(name, value)
        return response

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, _kwargs: Any
    ) -> HttpResponseBase | None:
        if not is_api_path(request.path_info) or not request.user.is_authenticated:
            return None
        try:
            await _check_calls(request)
            if _asks_a_model(request):
                _tell(request, await check_requests(rights_of(request)))
        except TooManyRequests as error:
            _tell(request, error.admission)
            wait_s = error.retry_after_s
            path = request.path_info
            return error_at(path, error.status, error.code, str(error), retry_after_s=wait_s)
        return None


def _asks_a_model(request: HttpRequest) -> bool:
    path = request.path_info
    return request.method == "POST" and path.startswith("/v1/") and path not in _COUNTS_ONLY


async def _check_calls(request: HttpRequest) -> None:
    admission = await admit([Window(f"calls:{request.user.pk}", CALLS_PER_MINUTE, 60.0)])
    if not admission.is_admitted:
        raise TooManyRequests(admission)


def _tell(request: HttpRequest, admission: Admission) -> None:
    request.limit_headers = headers_of(admission)  # type: ignore[attr-defined]
