"""Signing in for tokens: allauth's form and steps, as on the page, without a browser.

Because they are the same ones, all holds here that holds there: limits, confirmed addresses, suspended
accounts, second steps, and that nothing tells whether an address has an account, also not by its time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allauth.account.internal.constants import LoginStageKey
from allauth.account.internal.stagekit import get_pending_stage
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest
from django.utils import translation
from redis.exceptions import RedisError

from chat.api_errors import ApiError
from webapp.cache import AWAY_S
from webapp.models import User
from webapp.principal import session_store
from webapp.rate_limits import seconds_to_wait
from webapp.sign_in_forms import LoginForm
from webapp.two_step_forms import AuthenticateForm

_CODES = [Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES]


def sign_in(request: HttpRequest, email: str, password: str, code: str) -> tuple[User, Any]:
    """The user and the session that it made, which no cookie names. Raises ApiError.

    Who does not know the password gets the same answer whatever there is of an account.
    """
    request.attempted_login = email  # type: ignore[attr-defined]
    check_rate(request, "login")
    with _session_of_its_own(request) as session:
        form = LoginForm({"login": email, "password": password}, request=request)
        if not form.is_valid():
            raise _refusal(form)
        form.login(request)
        stage = get_pending_stage(request)
        if isinstance(stage, AuthenticateStage):
            _take_second_step(request, stage, code)
        user: Any = request.user
        if not user.is_authenticated:
            raise _reason(stage)
        return user, session


def check_rate(request: HttpRequest, door: str) -> None:
    """Raises ApiError, 429."""
    wait_s = seconds_to_wait(request, door)
    if wait_s is not None:
        text = f"Too many attempts. Please try again in {wait_s} seconds."
        raise ApiError(429, "rate_limit_exceeded", text, retry_after_s=wait_s)


def _refusal(form: LoginForm) -> ApiError:
    if form.has_error(NON_FIELD_ERRORS, "directory_unavailable"):
        text = "The directory that knows the password does not answer just now."
        # Whoever asks again sooner waits for the same connection.
        wait_s = settings.DIRECTORY.timeout_s if settings.DIRECTORY else None
        return ApiError(503, "directory_unavailable", text, retry_after_s=wait_s)
    if form.has_error(NON_FIELD_ERRORS, "directory_refused"):
        text = "There is no account for you here yet: sign in with a browser, which tells why."
        return ApiError(403, "no_account", text)
    return ApiError(401, "invalid_credentials", "The e-mail address or the password is wrong.")


def _take_second_step(request: HttpRequest, stage: AuthenticateStage, code: str) -> None:
    user = stage.login.user
    if not is_mfa_enabled(user, _CODES):
        text = "This account has passkeys for its second step: make an API key in a browser."
        raise ApiError(403, "passkey_required", text)
    if not code:
        text = "Send the code of your authenticator app, or a recovery code, as `code`."
        raise ApiError(401, "second_step_required", text, "code")
    check_rate(request, "second_step")
    form = AuthenticateForm({"code": code}, user=user)
    try:
        is_right = form.is_valid()
    except RedisError:  # in which it is noted, so that it works once
        text = "Codes cannot be taken just now."
        raise ApiError(503, "unavailable", text, retry_after_s=AWAY_S) from None
    if not is_right:
        with translation.override("en"):  # as all errors of the API
            raise ApiError(401, "invalid_code", str(form.errors["code"][0]), "code")
    form.save()
    stage.exit()


def _reason(stage: Any) -> ApiError:
    """Why nobody is signed in whose password and code were right."""
    if stage is not None and stage.key == LoginStageKey.VERIFY_EMAIL.value:
        text = "Confirm your e-mail address first: a letter with a link is on its way."
        return ApiError(403, "email_not_verified", text)
    return ApiError(403, "account_suspended", "This account is suspended.")


@contextmanager
def _session_of_its_own(request: HttpRequest) -> Iterator[Any]:
    """A sign-in writes into request.session and asks for cookies, which would open pages."""
    outer, user = request.session, request.user
    request.session, request.user = session_store(), AnonymousUser()
    try:
        yield request.session
    finally:
        request.session, request.user = outer, user
        request.META.pop("CSRF_COOKIE_NEEDS_UPDATE", None)
