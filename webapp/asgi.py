"""The ASGI application: HTTP, the chat socket, static files, and the server's life.

From the outside in: request id and log line, the client's real address, static files, then Django
or the socket. Any ASGI server can run it; `manage.py serve` uses daphne.
"""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

from webapp.asgi_types import Application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")


def build_application() -> Application:
    django_application = get_asgi_application()
    # Not earlier: these import models, which the line above makes possible.
    from chat.routing import websocket_urlpatterns
    from webapp.lifecycle import Lifespan
    from webapp.proxies import TrustedProxies
    from webapp.request_context import RequestContext
    from webapp.sockets import SameOrigin, SocketUser
    from webapp.static_files import with_static_files

    router = ProtocolTypeRouter(
        {
            "http": with_static_files(django_application),
            "websocket": SameOrigin(SocketUser(URLRouter(websocket_urlpatterns))),
        }
    )
    trusting = TrustedProxies(router, settings.TRUSTED_PROXIES, https=settings.HTTPS)
    return RequestContext(Lifespan(trusting))


application = build_application()
