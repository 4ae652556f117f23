"""Access tokens: how they are got, and what they open."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jwt
import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.test import Client

from tests.conftest import PASSWORD
from tests.sites import wait_until
from tests.webapp.token_client import (
    COOKIE,
    REFRESH,
    REVOKE,
    SESSIONS,
    TOKEN,
    WHOAMI,
    add_app,
    ask,
    bearer,
    code_of,
    error_of,
    opens,
    token_of,
)
from webapp.models import ApiKey, SignIn, User
from webapp.tenancy import as_user

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.webapp.urls"),
    pytest.mark.usefixtures("clean_redis"),
]

# --- getting one ----------------------------------------------------------------------------------


def test_an_access_token_opens_the_apis_as_its_user(client: Client, alice: User) -> None:
    response = ask(client, alice)
    answer = response.json()
    assert set(answer) == {"access_token", "token_type", "expires_in"}
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 900)
    assert response.headers["Cache-Control"] == "no-store"
    for path in (WHOAMI, "/v1/chat/whoami"):
        seen = Client().get(path, headers=bearer(answer["access_token"])).json()
        assert (seen["user"], seen["method"]) == (alice.pk, "token")
        assert seen["scope"] == f"user:{alice.pk}"


@pytest.mark.django_db(transaction=True)
def test_a_token_writes_as_well_as_it_reads(client: Client) -> None:
    ada = User.objects.create_user("ada@example.org", PASSWORD)
    headers = bearer(token_of(client, ada))
    made = client.post(
        "/api/folders", {"name": "Papers"}, content_type="application/json", headers=headers
    )
    assert made.status_code in (200, 201), made.content
    assert "Papers" in Client().get("/api/folders", headers=headers).content.decode()


def test_the_refresh_token_is_in_a_cookie_that_only_these_addresses_get(
    client: Client, alice: User, settings: Any
) -> None:
    response = ask(client, alice)
    assert set(response.cookies) == {COOKIE}, "no session's, which would open pages"
    cookie = response.cookies[COOKIE]
    assert cookie["path"] == "/api/auth/"
    assert (cookie["max-age"], cookie["samesite"]) == (7 * 24 * 3600, "Strict")
    assert cookie["httponly"] is True
    assert not cookie["secure"]
    assert cookie.value not in response.content.decode()
    settings.SESSION_COOKIE_SECURE = True
    assert ask(Client(), alice).cookies[COOKIE]["secure"] is True


@pytest.mark.parametrize(
    ("https", "name"), [("true", "__Secure-vitrine_refresh True"), ("false", COOKIE + " False")]
)
def test_behind_https_the_cookie_cannot_be_set_or_sent_without_it(
    tmp_path: Path, https: str, name: str
) -> None:
    show = "from webapp.settings import *; print(REFRESH_COOKIE_NAME, SESSION_COOKIE_SECURE)"
    environment = {**os.environ, "VITRINE_HTTPS": https, "DATA_DIR": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == name


def test_tokens_do_not_tell_the_session_by_which_they_live(client: Client, alice: User) -> None:
    token = token_of(client, alice)
    with as_user(alice.pk):
        key = SignIn.objects.get().session_key
    for text in (token, client.cookies[COOKIE].value):
        assert key not in str(jwt.decode_complete(text, options={"verify_signature": False}))


def test_nobody_learns_which_addresses_have_an_account(client: Client, alice: User) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, primary=True, verified=True)
    add_app(alice)
    suspended = User.objects.create_user("sue@example.org", PASSWORD, is_active=False)
    answers = {
        ask(client, who, password="a wrong one", code=code).content
        for who in (alice, suspended, "nobody@example.org", "no address", "a\x00b@example.org")
        for code in ("", "123456")
    }
    assert len(answers) == 1
    assert b"invalid_credentials" in answers.pop()


def test_an_unknown_address_takes_as_much_work_as_a_wrong_password(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    encode = MD5PasswordHasher.encode

    def count(self: Any, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", count)
    for who in (alice.email, "nobody@example.org"):
        hashed.clear()
        assert error_of(ask(client, who, password="a wrong one"))[0] == 401
        assert hashed == ["a wrong one"], who


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"email": 1}', '{"email": "a", "password": ""}'])
def test_what_is_no_request_is_a_400(client: Client, body: str) -> None:
    response = client.post(TOKEN, body, content_type="application/json")
    assert response.status_code == 400
    assert not response.cookies


def test_a_suspended_account_is_told_to_who_knows_its_password_only(
    client: Client, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    response = ask(client, alice)
    assert error_of(response) == (403, "account_suspended")
    assert not response.cookies


def test_with_mail_an_address_has_to_be_confirmed(
    client: Client, alice: User, settings: Any
) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"
    assert error_of(ask(client, alice)) == (403, "email_not_verified")
    wait_until(lambda: mail.outbox, what="a letter")
    EmailAddress.objects.update_or_create(
        user=alice, email=alice.email, defaults={"primary": True, "verified": True}
    )
    assert ask(client, alice).status_code == 200


def test_guessing_ends_and_counts_together_with_the_page(client: Client, alice: User) -> None:
    form = {"login": alice.email, "password": "a wrong one"}
    for _ in range(5):
        client.post("/accounts/login/", form)
    statuses = [ask(client, alice, password="a wrong one").status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]
    refused = ask(client, alice)
    assert error_of(refused) == (429, "rate_limit_exceeded")
    assert int(refused.headers["Retry-After"]) > 0
    assert ask(client, "somebody.else@example.org").status_code == 401, "by address and login"


# --- second steps ---------------------------------------------------------------------------------


def test_with_an_authenticator_app_the_password_is_not_enough(client: Client, alice: User) -> None:
    code = code_of(add_app(alice))
    without = ask(client, alice)
    assert error_of(without) == (401, "second_step_required")
    assert error_of(ask(client, alice, code="000000")) == (401, "invalid_code")
    assert error_of(ask(client, alice, password="a wrong one", code=code))[1] == (
        "invalid_credentials"
    )
    assert not client.cookies
    assert opens(token_of(client, alice, code=code))
    again = ask(Client(), alice, code=code)
    assert error_of(again) == (401, "invalid_code"), "a code works once"


def test_a_recovery_code_does_as_well_and_once(client: Client, alice: User) -> None:
    add_app(alice)
    code = RecoveryCodes.activate(alice).get_unused_codes()[0]
    assert opens(token_of(client, alice, code=code))
    assert error_of(ask(Client(), alice, code=code)) == (401, "invalid_code")


def test_passkeys_alone_need_a_browser(client: Client, alice: User) -> None:
    Authenticator.objects.create(user=alice, type="webauthn", data={"credential": {}, "name": "x"})
    for code in ("", "123456"):
        assert error_of(ask(client, alice, code=code)) == (403, "passkey_required")
    assert error_of(ask(client, alice, password="wrong"))[1] == "invalid_credentials"


def test_guessing_codes_ends_from_whatever_address(alice: User) -> None:
    add_app(alice)
    statuses = [
        ask(Client(REMOTE_ADDR=f"198.51.100.{n}"), alice, code=f"{n:06}").status_code
        for n in range(11)
    ]
    assert statuses == [401] * 10 + [429]
    visitor = Client()
    visitor.post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    assert visitor.post("/accounts/second-step/", {"code": "1"}).status_code == 429, (
        "the same count"
    )


# --- what a token opens ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/page", "/admin/", SESSIONS, "/settings/delete-account"])
def test_a_token_opens_no_page(client: Client, admin: User, path: str) -> None:
    token = token_of(client, admin)
    for response in (
        Client().get(path, headers=bearer(token)),
        Client().post(path, {"others": "yes"}, headers=bearer(token)),
    ):
        assert response.status_code == 403
    assert opens(token)


def test_a_token_manages_no_keys_however_fresh_it_is(client: Client, alice: User) -> None:
    headers = bearer(token_of(client, alice))
    for response in (
        client.get("/api/keys", headers=headers),
        client.post(
            "/api/keys", {"name": "mine"}, content_type="application/json", headers=headers
        ),
    ):
        assert error_of(response) == (403, "insufficient_scope")
    assert not ApiKey.objects.exists()


def test_a_token_needs_no_csrf_token_and_is_sent_alone(alice: User) -> None:
    program = Client(enforce_csrf_checks=True)
    token = token_of(program, alice)
    assert program.post(WHOAMI, headers=bearer(token)).status_code == 200
    twice = program.get(WHOAMI, headers=bearer(token) | {"X-Api-Key": "vt_" + "a" * 43})
    assert error_of(twice) == (400, "ambiguous_credentials")
    program.force_login(alice)
    assert error_of(program.get(WHOAMI, headers=bearer(token))) == (400, "ambiguous_credentials")
    assert Client().get(WHOAMI, headers={"X-Api-Key": token}).status_code == 401


def test_the_refresh_cookie_alone_opens_nothing(client: Client, alice: User) -> None:
    ask(client, alice)
    assert client.get(WHOAMI).status_code == 401
    assert client.get("/page").status_code == 302


def test_a_signed_in_browser_needs_a_csrf_token_and_keeps_its_session(
    alice: User, bob: User
) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert error_of(ask(browser, bob)) == (403, "csrf_failed")
    browser.get("/accounts/password/change/")
    response = browser.post(
        TOKEN,
        {"email": bob.email, "password": PASSWORD},
        content_type="application/json",
        headers={"X-CSRFToken": browser.cookies["vitrine_csrf"].value},
    )
    assert opens(response.json()["access_token"])
    assert set(response.cookies) == {COOKIE}
    assert browser.get(WHOAMI).json()["user"] == alice.pk


# --- what is told ---------------------------------------------------------------------------------


def test_openapi_tells_of_these_addresses_with_examples(client: Client, alice: User) -> None:
    client.force_login(alice)
    described = client.get("/api/openapi.json").json()
    token = described["paths"][TOKEN]["post"]
    assert "AccessToken" in str(token["responses"]["200"])
    assert "second_step_required" in str(token["responses"]["401"])
    schema = described["components"]["schemas"]["SignInWith"]["properties"]
    assert schema["email"]["examples"] == ["ada@example.org"]
    assert "refresh_token_reused" in str(described["paths"][REFRESH]["post"]["responses"]["401"])
    assert "204" in described["paths"][REVOKE]["post"]["responses"]


def test_an_api_call_by_token_costs_one_query_more_than_by_cookie(
    client: Client, alice: User, django_assert_num_queries: Any
) -> None:
    token = token_of(client, alice)
    opens(token)
    with django_assert_num_queries(2):  # the family, and the user with the tier
        opens(token)
