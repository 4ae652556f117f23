"""Pages for frames without an origin: what a model wrote is drawn there, where nothing is in reach.

They know nobody and nothing of the site, so they need no session; each brings a policy of its own.
"""

from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
_MAX_URL_CHARS = 4096


@login_not_required
async def diagram(request: HttpRequest) -> HttpResponse:
    """Draws the sources of diagrams that it is sent; scripts run, and reach nothing."""
    page = render(request, "sandbox/diagram.html")
    nonce = request.csp_nonce  # type: ignore[attr-defined]
    return _boxed(
        page, f"script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; sandbox allow-scripts"
    )


@login_not_required
async def preview(request: HttpRequest) -> HttpResponse:
    """Becomes the page that it is sent: its scripts run, and load and reach nothing.

    A form may be submitted, for its own script to hear of that; it leads nowhere. Where the frame would
    go elsewhere, the policy of the page around it (`frame-src`) is in the way.
    """
    page = render(request, "sandbox/preview.html")
    page["X-DNS-Prefetch-Control"] = "off"  # names would be looked up, which no policy hinders
    inside = "script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'"
    media = "img-src data: blob:; media-src data: blob:; font-src data:"
    return _boxed(page, f"{inside}; {media}; sandbox allow-scripts allow-forms")


@login_not_required
async def image(request: HttpRequest) -> HttpResponse:
    """`?url=` of an image that somebody wants to see; its host learns neither page nor person."""
    # Asked for by the page around it, after a click there: a preview cannot send its own frame here,
    # with what it has to tell in the address.
    told = request.headers
    if (told.get("Sec-Fetch-Dest", "iframe"), told.get("Sec-Fetch-Site", "same-origin")) != (
        "iframe",
        "same-origin",
    ):
        raise Http404
    url = request.GET.get("url", "")
    origin = _web_origin(url)
    page = render(request, "sandbox/image.html", {"url": url})
    nonce = request.csp_nonce  # type: ignore[attr-defined]
    page["Referrer-Policy"] = "no-referrer"
    return _boxed(page, f"img-src {origin}; style-src 'nonce-{nonce}'; sandbox")


def _boxed(page: HttpResponse, policy: str) -> HttpResponse:
    page["Content-Security-Policy"] = f"{_POLICY}; {policy}"
    page["X-Frame-Options"] = "SAMEORIGIN"
    return page


def _web_origin(url: str) -> str:
    """The origin of a web address, in ASCII. Raises Http404 for any other."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = f":{parts.port}" if parts.port else ""
    except (ValueError, UnicodeError):
        raise Http404 from None
    is_web = parts.scheme in ("http", "https") and len(url) <= _MAX_URL_CHARS
    if not is_web or not host.replace(".", "").replace("-", "").isalnum():
        raise Http404
    return f"{parts.scheme}://{host}{port}"
