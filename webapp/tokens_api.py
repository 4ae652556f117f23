"""REST of tokens under /api/auth, for programs whose people sign in with a password.

A foreign page could make a browser post here: its cookie is of SameSite=Strict, and an Origin other than
ours is refused, which keeps out pages on other ports and sub-domains as well. Programs send no Origin.
"""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema, Status

from chat.api_errors import ApiError, error_body
from webapp.models import SignIn
from webapp.request_context import arrived_at
from webapp.sign_ins import end_sign_ins
from webapp.token_families import (
    FamilyEnded,
    Overtaken,
    Reused,
    Tokens,
    begin_family,
    end_family,
    refresh_family,
)
from webapp.token_sign_in import check_rate, sign_in
from webapp.tokens import ACCESS_S, REFRESH_S, InvalidToken

router = Router(tags=["tokens"])
PATH = "/api/auth/"


class SignInWith(Schema):
    """`code` is that of an authenticator app or a recovery code, where the account has a second step."""

    email: str = Field(min_length=1, max_length=320, examples=["ada@example.org"])
    password: str = Field(min_length=1, examples=["correct horse battery"])
    code: str = Field("", max_length=64, examples=["492039"])


class AccessToken(Schema):
    """Names as in RFC 6749, section 5.1. The refresh token is in a cookie."""

    access_token: str = Field(examples=["eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJpc3MiOi….…"])
    token_type: str = Field(examples=["Bearer"])
    expires_in: int = Field(description="In seconds.", examples=[ACCESS_S])


def _described(*errors: tuple[int, str, str]) -> dict[str, Any]:
    """What OpenAPI says of these errors: (status, code, message), one example for each."""
    found: dict[int, dict[str, Any]] = {}
    for status, code, message in errors:
        found.setdefault(status, {})[code] = {"value": error_body(status, code, message)}
    content = {
        status: {"application/json": {"examples": examples}} for status, examples in found.items()
    }
    return {
        "security": [],
        "responses": {
            status: {"description": ", ".join(found[status]), "content": content[status]}
            for status in found
        },
    }


_FOREIGN = (403, "csrf_failed", "A page of another origin may not do this.")


@router.post(
    "/token",
    response=AccessToken,
    openapi_extra=_described(
        (401, "invalid_credentials", "The e-mail address or the password is wrong."),
        (401, "second_step_required", "Send the code of your authenticator app … as `code`."),
        (401, "invalid_code", "Incorrect code."),
        (403, "passkey_required", "This account has passkeys for its second step: …"),
        (403, "email_not_verified", "Confirm your e-mail address first: …"),
        (403, "account_suspended", "This account is suspended."),
        (403, "no_account", "There is no account for you here yet: …"),
        _FOREIGN,
        (429, "rate_limit_exceeded", "Too many attempts. Please try again in 42 seconds."),
        (503, "directory_unavailable", "The directory that knows the password does not answer …"),
    ),
)
def create_token(request: HttpRequest, response: HttpResponse, data: SignInWith) -> dict[str, Any]:
    """An access token for 15 minutes, and a refresh token for 7 days in an HttpOnly cookie."""
    _check_origin(request)
    user, session = sign_in(request, data.email, data.password, data.code)
    return _answer(response, begin_family(user, session))


@router.post(
    "/refresh",
    response=AccessToken,
    openapi_extra=_described(
        (401, "invalid_refresh_token", "Sign in again: …"),
        (401, "refresh_token_reused", "This refresh token had been used: …"),
        _FOREIGN,
        (409, "refresh_overtaken", "Another request has just refreshed: …"),
        (429, "rate_limit_exceeded", "Too many attempts. Please try again in 42 seconds."),
    ),
)
def refresh_token(request: HttpRequest, response: HttpResponse) -> dict[str, Any]:
    """Another access token, and another cookie in place of the one that was sent."""
    arrived = arrived_at(request)
    _check_origin(request)
    check_rate(request, "refresh")
    meta = request.META
    text = request.COOKIES.get(settings.REFRESH_COOKIE_NAME, "")
    agent = meta.get("HTTP_USER_AGENT", "")
    try:
        tokens = refresh_family(
            text, address=meta["REMOTE_ADDR"], user_agent=agent, arrived_at=arrived
        )
    except (InvalidToken, FamilyEnded):
        message = "Sign in again: there is no refresh token, or it is not valid any more."
        raise ApiError(401, "invalid_refresh_token", message) from None
    except Reused:
        message = "This refresh token had been used: all tokens of its sign-in have ended."
        raise ApiError(401, "refresh_token_reused", message) from None
    except Overtaken:
        message = "Another request has just refreshed: go on with the cookie that it got."
        raise ApiError(409, "refresh_overtaken", message) from None
    return _answer(response, tokens)


@router.post("/revoke", response={204: None}, openapi_extra=_described(_FOREIGN))
def revoke_tokens(request: HttpRequest, response: HttpResponse) -> Status[None]:
    """Sign out: all tokens end that come of the same sign-in as the cookie, or as the access token in
    the Authorization header. Where nothing is left to end, the answer is the same."""
    _check_origin(request)
    check_rate(request, "refresh")
    end_family(request.COOKIES.get(settings.REFRESH_COOKIE_NAME, ""))
    if request.auth_method == "token":  # type: ignore[attr-defined]
        end_sign_ins(SignIn.objects.filter(session_key=request.sign_in_key))  # type: ignore[attr-defined]
    response.delete_cookie(settings.REFRESH_COOKIE_NAME, path=PATH, samesite="Strict")
    return Status(204, None)


def _check_origin(request: HttpRequest) -> None:
    """Raises ApiError. Browsers send Origin with every POST; "null" is nobody's."""
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"{request.scheme}://{request.get_host()}":
        raise ApiError(*_FOREIGN)


def _answer(response: HttpResponse, tokens: Tokens) -> dict[str, Any]:
    response["Cache-Control"] = "no-store"
    response.set_cookie(
        settings.REFRESH_COOKIE_NAME,
        tokens.refresh,
        max_age=REFRESH_S,
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )
    return {"access_token": tokens.access, "token_type": "Bearer", "expires_in": ACCESS_S}
