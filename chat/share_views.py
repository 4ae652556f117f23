"""The page that a share link opens, and "Continue from here" on it."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from chat import notices, sharing
from chat.db import in_db
from chat.errors import NotFound
from chat.parts import with_results

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
        shown = await in_db(sharing.read)(token)
    except NotFound:
        raise Http404 from None
    shown["created_at"] = parse_datetime(shown["created_at"])
    for number, message in enumerate(shown["messages"], start=1):
        message["number"] = number
        message["parts"] = with_results(message["parts"])
    context = {"shared": shown, "token": token}
    response = render(request, "chat/shared.html", context)
    for name, value in _PRIVATE.items():
        response[name] = value
    return response


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
