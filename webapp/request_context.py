"""The outermost layer of every request and socket: its id, its log line, no rights yet."""

import logging
import re
import secrets
import time
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from webapp.asgi_types import Application, Message, Receive, Scope, Send
from webapp.tenancy import as_nobody

logger = logging.getLogger("webapp.requests")

_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_NO_TRACE = b"0" * 32
_FACTS = "vitrine.facts"
_ARRIVED_AT = "vitrine.arrived_at"
_QUIET = (settings.STATIC_URL, "/healthz", "/readyz")  # many and dull


class RequestContext:
    """Gives each request an id: the trace id of a W3C `traceparent`, or a new one.

    It is on every log line (as `request_id`) and on every response (as `x-request-id`).
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.application(scope, receive, send)
        request_id = trace_id(scope["headers"])
        facts: dict[str, Any] = {}
        scope = {**scope, _FACTS: facts, _ARRIVED_AT: timezone.now()}
        with structlog.contextvars.bound_contextvars(request_id=request_id), as_nobody():
            if scope["type"] == "websocket":
                await self.application(scope, receive, send)
            else:
                await self._answer(scope, receive, send, request_id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        started = time.perf_counter()
        facts = scope[_FACTS]
        outcome: dict[str, Any] = {"status": 500}

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                outcome.update(status=message["status"], first_byte_ms=_ms_since(started))
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self.application(scope, receive, send_with_id)
        finally:
            line = {"method": scope["method"], "route": None, **facts, **outcome}
            level = logging.DEBUG if scope["path"].startswith(_QUIET) else logging.INFO
            logger.log(level, "request", extra={**line, "total_ms": _ms_since(started)})


def note(request: HttpRequest, **facts: Any) -> None:
    """Add facts to the log lines of this request from here on, and to its last."""
    structlog.contextvars.bind_contextvars(**facts)
    scope: dict[str, Any] = getattr(request, "scope", {})
    scope.get(_FACTS, {}).update(facts)


def arrived_at(request: HttpRequest) -> datetime:
    """When the request came, before it waited for a thread; without our outermost layer it is now."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    found: datetime = scope.get(_ARRIVED_AT) or timezone.now()
    return found


def trace_id(headers: Any) -> str:
    """32 hexadecimal digits. Source: W3C Trace Context, section 3.2."""
    for name, value in headers:
        match = _TRACEPARENT.fullmatch(value) if name == b"traceparent" else None
        if match and match[1] != _NO_TRACE:
            return str(match[1].decode())
    return secrets.token_hex(16)


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)
