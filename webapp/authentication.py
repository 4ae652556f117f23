"""Puts the principal on each request, and closes every door that a view does not open."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.contrib.auth import middleware as stock
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.api_errors import api_error, is_api_path
from webapp.api_keys import SCOPES
from webapp.error_pages import error_page
from webapp.models import User
from webapp.principal import Principal, Refused, principal_for
from webapp.request_context import note
from webapp.tenancy import become_user


class AuthenticationMiddleware(stock.AuthenticationMiddleware):
    """Sets request.user, request.auth_method ("none", "session", "key") and request.api_key.

    A view that anybody may call is marked with Django's `login_not_required`.
    """

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        become_user(None)
        try:
            principal = await principal_for(
                request.session,
                has_session_cookie=settings.SESSION_COOKIE_NAME in request.COOKIES,
                authorization=request.headers.get("Authorization", ""),
            )
        except Refused as refused:
            _attach(request, None)
            return _refuse(request, refused)
        _attach(request, principal)
        return await self.get_response(request)  # type: ignore[misc, no-any-return]

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, _kwargs: Any
    ) -> HttpResponseBase | None:
        if request.resolver_match:
            note(request, route=request.resolver_match.route)
        if not request.user.is_authenticated:
            return _ask_to_sign_in(request) if getattr(view, "login_required", True) else None
        return _refuse_outside_scope(request)


def _attach(request: HttpRequest, principal: Principal | None) -> None:
    user = principal.user if principal else AnonymousUser()
    request.user = user
    request.auser = _returning(user)
    request.auth_method = principal.method if principal else "none"  # type: ignore[attr-defined]
    request.api_key = principal.api_key if principal else None  # type: ignore[attr-defined]
    if isinstance(user, User):
        become_user(user.pk)
        note(request, user=user.pk)


def _returning(user: User | AnonymousUser) -> Callable[[], Awaitable[User | AnonymousUser]]:
    async def auser() -> User | AnonymousUser:
        return user

    return auser


def _refuse(request: HttpRequest, refused: Refused) -> HttpResponse:
    if is_api_path(request.path_info):
        return api_error(refused.status, refused.code, str(refused))
    return error_page(request, refused.status, str(refused))


def _ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    if is_api_path(request.path_info):
        return api_error(
            401,
            "invalid_api_key",
            "Sign in, or send an API key as `Authorization: Bearer vt_…`.",
        )
    return redirect_to_login(request.get_full_path())


def _refuse_outside_scope(request: HttpRequest) -> HttpResponse | None:
    """A key opens only the doors of its scopes; pages, the admin console among them, never."""
    key = request.api_key  # type: ignore[attr-defined]
    if key is None or any(request.path_info.startswith(SCOPES[scope]) for scope in key.scopes):
        return None
    refused = Refused(403, "insufficient_scope", "This API key does not open this address.")
    return _refuse(request, refused)
