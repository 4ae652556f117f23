"""A program that signs in for tokens."""

import time
from typing import Any

from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.test import Client

from tests.conftest import PASSWORD
from webapp.models import User

TOKEN, REFRESH, REVOKE = "/api/auth/token", "/api/auth/refresh", "/api/auth/revoke"
COOKIE = "vitrine_refresh"
WHOAMI = "/api/whoami"
SESSIONS = "/settings/sessions"


def ask(client: Client, user: User | str, **more: Any) -> Any:
    email = user if isinstance(user, str) else user.email
    body = {"email": email, "password": PASSWORD} | more
    return client.post(TOKEN, body, content_type="application/json")


def token_of(client: Client, user: User, **more: Any) -> str:
    response = ask(client, user, **more)
    assert response.status_code == 200, response.content
    return str(response.json()["access_token"])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def error_of(response: Any) -> tuple[int, str]:
    error = response.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    return response.status_code, error["code"]


def opens(token: str, path: str = WHOAMI) -> bool:
    status = Client().get(path, headers=bearer(token)).status_code
    assert status in (200, 401)
    return bool(status == 200)


def with_cookie(value: str) -> Client:
    client = Client()
    client.cookies[COOKIE] = value
    return client


def add_app(user: User) -> str:
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))
