"""Small views to try the shell with, whatever the chat does."""

import asyncio
import logging
from collections.abc import AsyncIterator

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import engines
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from webapp import urls as site
from webapp.error_pages import bad_request, not_found, permission_denied, server_error
from webapp.models import User
from webapp.tenancy import current_scope

__all__ = ["handler400", "handler403", "handler404", "handler500"]
handler400, handler403 = bad_request, permission_denied
handler404, handler500 = not_found, server_error


async def whoami(request: HttpRequest) -> JsonResponse:
    user = request.user
    return JsonResponse(
        {
            "user": user.pk,
            "tier": user.tier.slug if isinstance(user, User) else None,
            "method": request.auth_method,
            "scope": current_scope(),
            "address": request.META["REMOTE_ADDR"],
        }
    )


@login_not_required
async def public(request: HttpRequest) -> HttpResponse:
    logging.getLogger("chat.somewhere").info("work on a lower floor")
    return await whoami(request)


@login_not_required
def nonce(request: HttpRequest) -> HttpResponse:
    template = engines["django"].from_string("{{ csp_nonce }}")
    return HttpResponse(template.render({}, request))


@login_not_required
def modules(request: HttpRequest) -> HttpResponse:
    template = engines["django"].from_string("{% load importmap %}{% importmap %}")
    return HttpResponse(template.render({}, request))


@login_not_required
def own_policy(request: HttpRequest) -> HttpResponse:
    return HttpResponse(headers={"Content-Security-Policy": "sandbox"})


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    async def chunks() -> AsyncIterator[str]:
        for _ in range(20):
            yield current_scope() + "\n"
            await asyncio.sleep(0.05)

    return StreamingHttpResponse(chunks())


async def silent(request: HttpRequest) -> StreamingHttpResponse:
    async def events() -> AsyncIterator[str]:
        yield "data: 1\n\n"
        await asyncio.sleep(0.3)
        yield "data: 2\n\n"

    return StreamingHttpResponse(events(), content_type="text/event-stream")


async def slow(request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(2.5)
    return HttpResponse(await User.objects.acount())


@login_not_required
async def fail(request: HttpRequest, secret: str) -> HttpResponse:
    raise RuntimeError("a bug")


@login_not_required
async def deny(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied


urlpatterns = [
    path("page", whoami),
    path("public", public),
    path("nonce", nonce),
    path("modules", modules),
    path("own-policy", own_policy),
    path("stream", stream),
    path("silent", silent),
    path("slow", slow),
    path("fail/<str:secret>", fail),
    path("deny", deny),
    path("api/whoami", csrf_exempt(whoami)),
    path("api/fail/<str:secret>", fail),
    path("v1/chat/whoami", csrf_exempt(whoami)),
    *site.urlpatterns,  # pages of the site link to each other
]
