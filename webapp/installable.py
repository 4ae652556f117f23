"""What makes the site an app on a desk or a phone: manifest, service worker, the page for no network.

Nothing of a person is kept by the worker, unless they say so in the settings: files of the interface, by
their hashes, and one page that says that there is no connection. So no old version is ever shown, and no
chat lies on a lent device.
"""

import json
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import get_language, get_language_bidi, gettext

_FIRST = (
    "js/",
    "css/",
    "img/favicon",
    "vendor/markdown-it",
    "vendor/purify",
    "vendor/fonts/inter-latin.",
)
_ICONS = [("icon-192.png", "192x192", "any"), ("icon-512.png", "512x512", "any")]
_ICONS += [("icon-maskable-512.png", "512x512", "maskable")]


@login_not_required
async def manifest(request: HttpRequest) -> JsonResponse:
    icons = [
        {"src": static(f"img/{name}"), "sizes": sizes, "type": "image/png", "purpose": purpose}
        for name, sizes, purpose in _ICONS
    ]
    value = {
        "id": "/",
        "name": "Vitrine",
        "short_name": "Vitrine",
        "description": gettext("A chat with its own engine."),
        "lang": get_language(),
        "dir": "rtl" if get_language_bidi() else "ltr",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#fbfaf8",
        "theme_color": "#fbfaf8",
        "icons": icons,
        # Read by static/js/shared-in.js. GET: the page fills the message box, and a person sends.
        "share_target": {
            "action": "/",
            "method": "GET",
            "params": {"title": "title", "text": "text", "url": "url"},
        },
        "shortcuts": [{"name": gettext("New chat"), "url": "/"}],
    }
    return JsonResponse(value, content_type="application/manifest+json")


@login_not_required
async def service_worker(request: HttpRequest) -> HttpResponse:
    files = shell_files() if not settings.DEBUG else []
    context = {"shell": json.dumps([reverse("offline"), *files]), "version": _fingerprint(files)}
    content_type = "text/javascript"
    response = render(request, "service-worker.js", context, content_type=content_type)
    response["Cache-Control"] = "no-cache"
    return response


@login_not_required
async def offline(request: HttpRequest) -> HttpResponse:
    return render(request, "offline.html")


@cache
def shell_files() -> list[str]:
    """Addresses of what every page needs first, each with its hash."""
    hashed: dict[str, Any] = getattr(staticfiles_storage, "hashed_files", {})
    return [static(name) for name in sorted(hashed) if name.startswith(_FIRST)]


def _fingerprint(files: list[str]) -> str:
    """Changes with every file, and with the release, whose pages may differ."""
    return sha256("\n".join([version("vitrine"), *files]).encode()).hexdigest()[:12]
