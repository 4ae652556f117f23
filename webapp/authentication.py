"""Puts the principal on each request, and closes every door that a view does not open."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import markcoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.auth import middleware as stock
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from chat.db import in_db
from webapp.api_errors import error_at, is_api_path
from webapp.api_keys import is_key_usable
from webapp.connections import releasing
from webapp.error_pages import error_page
from webapp.models import User
from webapp.principal import Principal, Refused, principal_for
from webapp.request_context import note
from webapp.scim.errors import is_scim_path
from webapp.scopes import ENTRANCES, opens
from webapp.second_step_rule import OPEN_WHILE_OWED, may_owe_one, who_owe_one
from webapp.sign_ins import lately_noted
from webapp.sign_ins import note as note_sign_in
from webapp.socket_users import user_of_session_key
from webapp.tenancy import become_user


class AuthenticationMiddleware(stock.AuthenticationMiddleware):
    """Sets request.user, request.auth_method ("none", "session", "key", "token"), request.api_key,
    request.sign_in_key, the key of the session by which somebody is here, also with a token, and
    request.is_still_in, which asks again later, for answers that outlive a sign-out.

    A view that anybody may call is marked with Django's `login_not_required`, or stands in
    webapp/scopes.py.
    """

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        become_user(None)
        if is_scim_path(request.path_info):
            _attach(request, None)  # a directory is nobody; its door is webapp/scim/door.py
            return await self.get_response(request)  # type: ignore[misc, no-any-return]
        try:
            principal = await principal_for(
                request.session,
                has_session_cookie=settings.SESSION_COOKIE_NAME in request.COOKIES,
                authorization=request.headers.get("Authorization", ""),
                x_api_key=request.headers.get("X-Api-Key", ""),
            )
        except Refused as refused:
            _attach(request, None)
            return _refuse(request, refused)
        _attach(request, principal)
        await _note_sign_in(request, principal)
        return await self.get_response(request)  # type: ignore[misc, no-any-return]

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, _kwargs: Any
    ) -> HttpResponseBase | None:
        if request.resolver_match:
            note(request, route=request.resolver_match.route)
        if not request.user.is_authenticated:
            is_open = request.path_info in ENTRANCES or not getattr(view, "login_required", True)
            return None if is_open else _ask_to_sign_in(request)
        return _refuse_outside_scope(request) or await _ask_for_second_step(request)


def _attach(request: HttpRequest, principal: Principal | None) -> None:
    user = principal.user if principal else AnonymousUser()
    request.user = user
    request.auser = _returning(user)
    request.auth_method = principal.method if principal else "none"  # type: ignore[attr-defined]
    request.api_key = principal.api_key if principal else None  # type: ignore[attr-defined]
    request.sign_in_key = principal.session_key if principal else None  # type: ignore[attr-defined]
    request.is_still_in = _asking_again(principal)  # type: ignore[attr-defined]
    if isinstance(user, User):
        become_user(user.pk)
        note(request, user=user.pk)


def _asking_again(principal: Principal | None) -> Callable[[], Awaitable[bool]]:
    async def is_still_in() -> bool:
        if principal is None:
            return False
        if principal.api_key is not None:
            return await in_db(is_key_usable)(principal.api_key.pk)
        return (await user_of_session_key(principal.session_key)).pk == principal.user.pk

    return is_still_in


async def _note_sign_in(request: HttpRequest, principal: Principal) -> None:
    key, user = principal.session_key, principal.user
    if not isinstance(user, User) or key is None:
        return
    if not lately_noted.is_new(key):
        return
    meta = request.META
    await sync_to_async(note_sign_in)(
        user, key, meta["REMOTE_ADDR"], meta.get("HTTP_USER_AGENT", "")
    )


def _returning(user: User | AnonymousUser) -> Callable[[], Awaitable[User | AnonymousUser]]:
    async def auser() -> User | AnonymousUser:
        return user

    return auser


def _refuse(request: HttpRequest, refused: Refused) -> HttpResponse:
    if is_api_path(request.path_info):
        return error_at(request.path_info, refused.status, refused.code, str(refused))
    return error_page(request, refused.status, str(refused))


def _ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    if is_api_path(request.path_info):
        return error_at(
            request.path_info,
            401,
            "invalid_api_key",
            "Sign in, or send an API key as `Authorization: Bearer vt_…`.",
        )
    return redirect_to_login(request.get_full_path())


async def _ask_for_second_step(request: HttpRequest) -> HttpResponse | None:
    """Who owes one comes no further than to the page where it is added."""
    user, match = request.user, request.resolver_match
    if request.auth_method not in ("session", "token") or not isinstance(user, User):  # type: ignore[attr-defined]
        return None
    if match and match.url_name in OPEN_WHILE_OWED and not is_api_path(request.path_info):
        return None
    if not may_owe_one(user) or not await sync_to_async(releasing(who_owe_one))([user]):
        return None
    if not is_api_path(request.path_info):
        return redirect("mfa_index")
    text = "Your organisation asks for a second step: add one in the settings, under Security."
    return error_at(request.path_info, 403, "second_step_missing", text)


def _refuse_outside_scope(request: HttpRequest) -> HttpResponse | None:
    """A key opens only the doors of its scopes, and a token those of programs; pages, the admin console
    among them, neither does."""
    key, method = request.api_key, request.auth_method  # type: ignore[attr-defined]
    if method == "token" and not is_api_path(request.path_info):
        text = "An access token opens /v1 and /api, and no page."
    elif key is not None and not opens(key.scopes, request.method or "", request.path_info):
        text = "This API key does not open this address."
    else:
        return None
    return _refuse(request, Refused(403, "insufficient_scope", text))
