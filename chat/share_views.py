"""The page that a share link opens, the pictures on it, and "Continue from here"."""

from functools import partial
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from chat import notices, sharing
from chat.db import in_db
from chat.document_view_api import wide_enough
from chat.errors import NotFound
from chat.kept import Kept
from chat.made_pictures import WIDTHS_PX, on_page
from chat.off_loop import off_loop_for_pictures
from chat.values import Value
from retrieval import document_files
from retrieval.parsing import Unreadable, picture

_kept: Kept[tuple[UUID, int], bytes] = Kept(16 * 2**20, len)
_PRIVATE = {
    "Cache-Control": "private, no-store",
    "X-Robots-Tag": "noindex, nofollow",
}


@login_not_required
async def show_shared(request: HttpRequest, token: str) -> HttpResponse:
    """A shared branch. Without PUBLIC_SHARES a sign-in is asked for, whatever the token."""
    if not (request.user.is_authenticated or settings.PUBLIC_SHARES):
        return redirect_to_login(request.get_full_path())
    try:
        shown, pictures = await in_db(_read)(token)
    except NotFound:
        raise Http404 from None
    shown["created_at"] = parse_datetime(shown["created_at"])
    for number, message in enumerate(shown["messages"], start=1):
        message["number"] = number
        message["parts"] = on_page(message["parts"], pictures, partial(_picture_url, token))
    context = {"shared": shown, "token": token}
    return _private(render(request, "chat/shared.html", context))


def _read(token: str) -> tuple[Value, set[UUID]]:
    """What the link shows, and which pictures of it are there."""
    shown = sharing.read(token)
    return shown, sharing.pictures_in(token, shown)


def _picture_url(token: str, picture_id: UUID, width: int) -> str:
    return f"{reverse('shared-picture', args=[token, picture_id])}?width={width}"


@login_not_required
async def show_shared_picture(request: HttpRequest, token: str, picture_id: UUID) -> HttpResponse:
    """A picture that the link shows, as a WebP (?width=…), as long as the link opens."""
    if not (request.user.is_authenticated or settings.PUBLIC_SHARES):
        return redirect_to_login(request.get_full_path())
    width = request.GET.get("width", "")
    width_px = wide_enough(int(width) if width.isdecimal() and len(width) < 6 else WIDTHS_PX[0])
    try:
        version = await in_db(sharing.picture_in)(token, picture_id)
        data = await _drawn(version.pk, width_px)
    except (NotFound, Unreadable, OSError):
        raise Http404 from None
    return _private(HttpResponse(data, content_type="image/webp"))


def _private(response: HttpResponse) -> HttpResponse:
    for name, value in _PRIVATE.items():
        response[name] = value
    return response


async def _drawn(version_id: UUID, width_px: int) -> bytes:
    """Drawn anew for the first who asks: everybody who has a link may. Raises Unreadable, OSError."""
    key = (version_id, width_px)
    if (data := _kept.find(key)) is None:
        path = document_files.path_of(version_id)
        data = (await off_loop_for_pictures(picture, path, 1, width_px)).data
        _kept.keep(key, data)
    return data


@require_POST
async def continue_shared(request: HttpRequest, token: str) -> HttpResponse:
    """Copy the branch, up to message number `up_to`, into the reader's chats and go there."""
    up_to = request.POST.get("up_to", "")
    try:
        number = int(up_to) if up_to.isdecimal() and len(up_to) < 9 else None
        conversation = await in_db(sharing.continue_from)(request.user, token, number)
    except NotFound:
        raise Http404 from None
    await notices.conversation_changed(request.user.pk, conversation.pk)
    return redirect("chat", conversation.pk)
