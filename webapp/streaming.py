"""What a long stream must not do to the others."""

from collections.abc import Awaitable, Callable

from asgiref.sync import markcoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from webapp.connections import release_connections
from webapp.request_threads import has_thread


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
            if has_thread():
                await sync_to_async(release_connections)()
            response.headers.setdefault("X-Accel-Buffering", "no")  # nginx would hold it back
        return response
