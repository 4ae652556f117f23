"""Sign-up, sign-in, sign-out, passwords."""

import re

import pytest
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.conftest import PASSWORD
from webapp.models import Tier, User
from webapp.sessions import SessionStore
from webapp.signup_policy import SignupPolicy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

SIGNUP, LOGIN = "/accounts/signup/", "/accounts/login/"


def sign_up(client: Client, email: str = "dora@example.org", **more: str) -> int:
    form = {"name": "Dora", "email": email, "password1": PASSWORD, **more}
    return client.post(SIGNUP, form).status_code


def sign_in(client: Client, email: str, password: str = PASSWORD, **headers: str) -> int:
    form = {"login": email, "password": password}
    return client.post(LOGIN, form, **headers).status_code


def test_sign_up_is_refused_with_a_friendly_page_until_there_is_an_administrator(
    client: Client,
) -> None:
    assert sign_up(client) == 200
    assert "not set up yet" in client.get(SIGNUP).content.decode()
    assert not User.objects.exists()


def test_somebody_who_signs_up_is_signed_in_as_a_free_user_without_rights(
    client: Client, admin: User
) -> None:
    rights = {"is_staff": "on", "is_superuser": "on", "tier": "admin", "id": "1"}
    assert sign_up(client, "Dora@Example.org", **rights) == 302
    dora = User.objects.get(email="dora@example.org")
    assert (dora.name, dora.tier_id, dora.is_staff, dora.is_superuser) == (
        "Dora",
        "free",
        False,
        False,
    )
    assert client.get("/accounts/password/change/").status_code == 200


def test_sign_up_can_be_closed(client: Client, admin: User, settings) -> None:
    settings.SIGNUP = SignupPolicy("closed")
    assert sign_up(client) == 200
    assert "Ask your administrator" in client.get(SIGNUP).content.decode()
    assert User.objects.count() == 1


def test_the_same_address_in_other_letters_is_the_same_account(
    client: Client, admin: User, alice: User
) -> None:
    assert sign_up(client, "ALICE@example.org") == 200
    assert User.objects.filter(email__iexact="alice@example.org").count() == 1
    assert sign_in(client, "Alice@EXAMPLE.org") == 302


def test_a_known_and_an_unknown_address_get_the_same_answer(alice: User) -> None:
    pages = []
    for email in ("alice@example.org", "nobody@example.org"):
        page = Client().post(LOGIN, {"login": email, "password": "wrong"})
        assert "This e-mail address and this password do not go together." in page.content.decode()
        assert page.status_code == 200
        text = page.content.decode().replace(email, "")
        pages.append(re.sub(r'(value|nonce)="[^"]*"', "", text))
    assert pages[0] == pages[1]


def test_a_suspended_user_cannot_sign_in_and_loses_the_session(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get("/accounts/password/change/").status_code == 200
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.get("/accounts/password/change/").status_code == 302
    response = Client().post(LOGIN, {"login": alice.email, "password": PASSWORD}, follow=True)
    assert "suspended" in response.content.decode()


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "http:evil.example", "javascript:1"]
)
def test_after_signing_in_nobody_is_sent_elsewhere(
    client: Client, alice: User, target: str
) -> None:
    response = client.post(LOGIN, {"login": alice.email, "password": PASSWORD, "next": target})
    assert response.headers["Location"] == "/"


def test_after_signing_in_one_gets_where_one_wanted_to_go(client: Client, alice: User) -> None:
    assert client.get("/accounts/password/change/?x=1").headers["Location"] == (
        "/accounts/login/?next=/accounts/password/change/%3Fx%3D1"
    )
    form = {"login": alice.email, "password": PASSWORD, "next": "/c/1"}
    assert client.post(LOGIN, form).headers["Location"] == "/c/1"


def test_a_changed_password_ends_the_other_sessions(client: Client, alice: User) -> None:
    elsewhere = Client()
    elsewhere.force_login(alice)
    client.force_login(alice)
    form = {"oldpassword": PASSWORD, "password1": "a new horse 42", "password2": "a new horse 42"}
    assert client.post("/accounts/password/change/", form).status_code == 302
    assert client.get("/accounts/password/change/").status_code == 200
    assert elsewhere.get("/accounts/password/change/").status_code == 302


def test_signing_out_needs_a_post(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get("/accounts/logout/").status_code == 200
    assert client.get("/accounts/password/change/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/accounts/password/change/").status_code == 302


def test_guessing_a_password_ends_in_429_with_retry_after(client: Client, alice: User) -> None:
    codes = [sign_in(client, alice.email, "wrong") for _ in range(11)]
    assert codes == [200] * 10 + [429]
    response = client.post(LOGIN, {"login": alice.email, "password": PASSWORD})
    assert response.status_code == 429
    assert 1 <= int(response.headers["Retry-After"]) <= 300


def test_guessing_the_old_password_of_a_stolen_session_ends_as_well(
    client: Client, alice: User
) -> None:
    client.force_login(alice)
    form = {"password1": "a new horse 42", "password2": "a new horse 42"}
    path = "/accounts/password/change/"
    codes = [
        client.post(path, {"oldpassword": f"guess {n}", **form}).status_code for n in range(11)
    ]
    assert codes == [200] * 10 + [429]


def test_a_session_is_read_while_redis_is_away(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(alice)

    def away(*_: object, **__: object) -> None:
        raise RedisConnectionError("away")

    for method in ("get", "set", "aget", "aset"):
        monkeypatch.setattr(f"django.core.cache.backends.redis.RedisCache.{method}", away)
    assert SessionStore(client.session.session_key).load()["_auth_user_id"] == str(alice.pk)


def test_a_guesser_locks_nobody_else_out(client: Client, alice: User) -> None:
    for _ in range(12):
        sign_in(client, alice.email, "wrong", REMOTE_ADDR="203.0.113.9")
    assert sign_in(client, alice.email, REMOTE_ADDR="203.0.113.9") == 429
    assert sign_in(client, alice.email, REMOTE_ADDR="198.51.100.7") == 302


def test_a_network_of_one_visitor_counts_as_one_address(client: Client, alice: User) -> None:
    codes = [
        sign_in(client, alice.email, "wrong", REMOTE_ADDR=f"2001:db8:0:1::{n}")
        for n in range(1, 12)
    ]
    assert codes == [200] * 10 + [429]
    assert sign_in(client, alice.email, REMOTE_ADDR="2001:db8:0:2::1") == 302


def test_a_made_up_forwarded_address_does_not_reset_the_count(client: Client, alice: User) -> None:
    codes = [
        sign_in(client, alice.email, "wrong", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}")
        for n in range(11)
    ]
    assert codes[-1] == 429


def test_the_tiers_are_there() -> None:
    assert set(Tier.objects.values_list("slug", flat=True)) == {
        "free",
        "pro",
        "enterprise",
        "admin",
    }
