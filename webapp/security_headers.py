"""Security headers on every page, shaped like the CSP support of Django 6."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.functional import SimpleLazyObject, empty

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "frame-src": "'self'",  # sandboxed pages of ours (chat/sandboxes.py): no other may be framed
    "connect-src": "'self'",  # a WebSocket to our own origin is 'self' too (CSP level 3)
    "manifest-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
# unfold's pages keep expressions in attributes, which Alpine compiles, and colours in a style element.
# Nothing that people write is shown there but names and addresses, as escaped text.
_CONSOLE = {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    # A link in an answer names a host; looking that up would tell its owner what was written.
    "X-DNS-Prefetch-Control": "off",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self), payment=()",
}
_HSTS = "max-age=31536000"


class LazyNonce(SimpleLazyObject):
    """Made when a template first prints it; the policy names a nonce only if one was printed."""

    def __init__(self) -> None:
        super().__init__(lambda: secrets.token_urlsafe(16))

    @property
    def is_used(self) -> bool:
        return self.__dict__["_wrapped"] is not empty


class SecurityHeadersMiddleware:
    """A view that sets one of the headers itself, for a sandboxed page say, keeps its own."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        nonce = request.csp_nonce = LazyNonce()  # type: ignore[attr-defined]
        response = await self.get_response(request)
        is_console = request.path_info.startswith("/admin/")
        policy = content_security_policy(nonce, is_console=is_console)
        response.headers.setdefault("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        if settings.HTTPS:
            response.headers.setdefault("Strict-Transport-Security", _HSTS)
        return response


def content_security_policy(nonce: LazyNonce, *, is_console: bool = False) -> str:
    policy = _POLICY | (_CONSOLE if is_console else {})
    if nonce.is_used:
        policy["script-src"] += f" 'nonce-{nonce}'"
    return "; ".join(f"{name} {sources}" for name, sources in policy.items())


def nonce_context(request: HttpRequest) -> dict[str, Any]:
    """For templates: `<script nonce="{{ csp_nonce }}">`."""
    return {"csp_nonce": getattr(request, "csp_nonce", "")}
