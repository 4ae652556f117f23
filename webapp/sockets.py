"""What stands before the chat's WebSocket, and before the same over HTTP: its origin and its user."""

import json
from types import SimpleNamespace
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.cookie import parse_cookie
from django.http.request import split_domain_port, validate_host
from django.utils import translation

from chat.api_errors import error_body
from webapp.asgi_types import Application, Receive, Scope, Send
from webapp.languages import language_of
from webapp.models import User
from webapp.socket_users import user_of_session_key
from webapp.tenancy import as_nobody, as_user

_PAGE_SCHEMES = {"ws": "http", "wss": "https"}


class SameOrigin:
    """Refuses sockets that a page of another origin opens: scheme, host and port must be ours.

    Browsers send cookies to another port of the same host as well, so the host is not enough.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = self.application if is_same_origin(scope) else WebsocketDenier()
        await application(scope, receive, send)


class SameOriginWrites:
    """The same of plain HTTP: what is read no other page can see, and browsers name no origin there."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD", "OPTIONS") or is_same_origin(scope):
            return await self.application(scope, receive, send)
        headers = [(b"content-type", b"application/json")]
        body = json.dumps(error_body(403, "forbidden", "This page is of another origin.")).encode()
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class SocketUser:
    """Sets scope["user"] from the session cookie; the socket then works in that user's scope.

    Nobody is let through as AnonymousUser: the consumer accepts and closes with 4401, because a
    browser cannot read the status of a refused handshake. scope["is_signed_in"] asks again later,
    since a socket outlives sign-out, a changed password and a suspended account.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cookies = parse_cookie("; ".join(headers(scope, b"cookie")))
        key = cookies.get(settings.SESSION_COOKIE_NAME)
        user = await user_of_session_key(key)

        async def is_signed_in() -> bool:
            return (await user_of_session_key(key)).pk == user.pk

        in_scope = as_user(user.pk) if isinstance(user, User) else as_nobody()
        with in_scope, translation.override(_language_of(scope, user, cookies)):
            told = {**scope, "user": user, "is_signed_in": is_signed_in}
            await self.application(told, receive, send)


def is_same_origin(scope: Any) -> bool:
    """False also for a missing or repeated header."""
    origins, hosts = headers(scope, b"origin"), headers(scope, b"host")
    if len(origins) != 1 or len(hosts) != 1:
        return False
    scheme = scope.get("scheme", "ws")
    page_scheme = _PAGE_SCHEMES.get(scheme, scheme)
    name, _ = split_domain_port(hosts[0])
    is_ours = validate_host(name, settings.ALLOWED_HOSTS)
    return is_ours and origins[0] == f"{page_scheme}://{hosts[0]}"


def _language_of(scope: Any, user: Any, cookies: dict[str, str]) -> str:
    """As of a page that is asked for with the same headers."""
    accepted = ",".join(headers(scope, b"accept-language"))
    meta = {"HTTP_ACCEPT_LANGUAGE": accepted}
    return language_of(SimpleNamespace(user=user, COOKIES=cookies, META=meta))


def headers(scope: Any, name: bytes) -> list[str]:
    return [value.decode("latin1") for key, value in scope["headers"] if key == name]
