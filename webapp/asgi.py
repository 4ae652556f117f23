"""The ASGI application: HTTP, the chat socket, static files, and the server's life.

From the outside in: request id and log line, the client's real address, static files, then the socket
over HTTP, signs of life in streams around Django, or the socket. Any ASGI server can run it;
`manage.py serve` uses daphne.
"""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings

from webapp.asgi_types import Application, Receive, Scope, Send
from webapp.django_handler import django_handler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")


def build_application() -> Application:
    django_application = django_handler()
    # Not earlier: these import models, which the line above makes possible.
    from chat.http_line import PREFIX, HttpLine
    from chat.routing import websocket_urlpatterns
    from webapp.celery import app  # noqa: F401 - tasks that views send go to its broker
    from webapp.keep_alive import KeepAlive
    from webapp.lifecycle import Lifespan
    from webapp.proxies import TrustedProxies
    from webapp.request_context import RequestContext
    from webapp.sockets import SameOrigin, SameOriginWrites, SocketUser
    from webapp.static_files import with_static_files

    line = SameOriginWrites(SocketUser(HttpLine()))

    def with_line(application: Application) -> Application:
        async def routed(scope: Scope, receive: Receive, send: Send) -> None:
            is_line = scope["path"].startswith(PREFIX)
            await (line if is_line else application)(scope, receive, send)

        return routed

    router = ProtocolTypeRouter(
        {
            "http": with_static_files(with_line(KeepAlive(django_application))),
            "websocket": SameOrigin(SocketUser(URLRouter(websocket_urlpatterns))),
        }
    )
    trusting = TrustedProxies(router, settings.TRUSTED_PROXIES, https=settings.HTTPS)
    return RequestContext(Lifespan(trusting))


application = build_application()
