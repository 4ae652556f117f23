"""What a long stream must not do to the others."""

from collections.abc import Awaitable, Callable

from asgiref.sync import SyncToAsync, markcoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from webapp.connections import release_connections


class StreamingMiddleware:
    """Before a stream begins, its database connection goes back to the pool.

    A stream that asks the database again should use channels' database_sync_to_async.
    """

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = await self.get_response(request)
        if response.streaming:
            if _has_thread():
                await sync_to_async(release_connections)()
            response.headers.setdefault("X-Accel-Buffering", "no")  # nginx would hold it back
        return response


def _has_thread() -> bool:
    """Whether anything of this request has run in the request's own thread, or outside of a server."""
    context = SyncToAsync.thread_sensitive_context.get(None)
    return context is None or context in SyncToAsync.context_to_thread_executor
