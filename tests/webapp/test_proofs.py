"""Who has neither password nor second step proves who it is by a sign-in of just now."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.test import Client

from tests.webapp.test_keys import FORM
from webapp.api_keys import create_api_key
from webapp.models import ApiKey, User
from webapp.proofs import FRESH_SIGN_IN_S

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

NEW_PASSWORD = {"password1": "a new horse 42", "password2": "a new horse 42"}
KEY = {"name": "x", "scopes": ["chat"]}


@pytest.fixture(autouse=True)
def with_mail(settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"


@pytest.fixture
def of_provider(alice: User) -> User:
    alice.set_unusable_password()
    alice.save()
    EmailAddress.objects.create(user=alice, email=alice.email, primary=True, verified=True)
    return alice


def signed_in(user: User, *, before_s: float) -> Client:
    """By a provider, so long ago."""
    client = Client()
    client.force_login(user)
    session = client.session
    session["account_authentication_methods"] = [
        {"method": "socialaccount", "at": time.time() - before_s, "provider": "work", "uid": "1"}
    ]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()
    return client


DOORS: dict[str, Callable[[Client, int], Any]] = {
    "set a password": lambda client, _: client.post("/accounts/password/set/", NEW_PASSWORD),
    "make a key": lambda client, _: client.post("/settings/keys/new", FORM),
    "rotate a key": lambda client, key: client.post(f"/settings/keys/{key}/rotate"),
    "add an app": lambda client, _: client.get("/settings/security/app"),
    "add a passkey": lambda client, _: client.get("/settings/security/passkeys/add"),
    "change the address": lambda client, _: client.post(
        "/accounts/email/", {"email": "evil@example.com", "action_add": "yes"}
    ),
    "delete the account": lambda client, _: client.post(
        "/settings/delete-account", {"email": "alice@example.org"}
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_old_session_of_who_has_no_password_is_told_to_sign_in_again(
    of_provider: User, door: str
) -> None:
    key, _ = create_api_key(of_provider)
    page = DOORS[door](signed_in(of_provider, before_s=3600), key.pk)
    assert page.status_code == 403
    text = page.content.decode()
    assert "Sign out and in again first" in text
    assert "/accounts/logout/?next=%2Faccounts%2Flogin%2F%3Fnext%3D" in text
    user = User.objects.get(pk=of_provider.pk)
    assert not user.has_usable_password()
    assert ApiKey.objects.get().secret_hash == key.secret_hash
    assert not Authenticator.objects.exists()
    assert [one.email for one in EmailAddress.objects.all()] == [user.email]


@pytest.mark.parametrize("path", ["/api/keys", "/api/keys/{}/rotate"])
def test_so_is_a_program_in_that_session(of_provider: User, path: str) -> None:
    key, _ = create_api_key(of_provider)
    client = signed_in(of_provider, before_s=3600)
    refused = client.post(path.format(key.pk), KEY, content_type="application/json")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "reauthentication_required"
    assert "Sign out and in again" in refused.json()["error"]["message"]
    assert ApiKey.objects.get().secret_hash == key.secret_hash


@pytest.mark.parametrize("door", DOORS)
def test_a_sign_in_of_just_now_opens(of_provider: User, door: str) -> None:
    key, _ = create_api_key(of_provider)
    client = signed_in(of_provider, before_s=FRESH_SIGN_IN_S - 60)
    assert DOORS[door](client, key.pk).status_code in (200, 302)


def test_the_way_leads_back(of_provider: User) -> None:
    client = signed_in(of_provider, before_s=3600)
    page = client.get("/settings/keys/new?x=1")
    out = client.post(page.context["way"])
    assert out.headers["Location"] == "/accounts/login/?next=%2Fsettings%2Fkeys%2Fnew%3Fx%3D1"
