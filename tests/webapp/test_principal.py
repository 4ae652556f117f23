"""Who may do what with which credentials: pages, /api, /v1."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from webapp.api_keys import UnknownScope, create_api_key, revoke_api_key, rotate_api_key
from webapp.models import ApiKey, Tier, User

# Keys are looked up on connections of their own, which see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.webapp.urls")]

NEAR_MISSES = [
    "",
    "vt_",
    "vt_" + "a" * 43,
    "vt_' OR 1=1 --" + "a" * 30,
    "vt_\x00" + "a" * 42,
    "vt_" + "a" * 1_000_000,
    "sk-something",
]


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def error_of(response: Any) -> dict[str, Any]:
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    return error


def test_nobody_is_sent_to_the_sign_in_page_and_gets_json_from_an_api(client: Client) -> None:
    assert client.get("/page?x=1").headers["Location"] == "/accounts/login/?next=/page%3Fx%3D1"
    for path in ("/api/whoami", "/v1/chat/whoami"):
        for response in (client.get(path), client.post(path)):
            assert response.status_code == 401
            assert error_of(response)["code"] == "invalid_api_key"
            assert response.headers["WWW-Authenticate"] == "Bearer"
    assert client.get("/public").json()["method"] == "none"


def test_a_session_opens_pages_and_apis(client: Client, alice: User) -> None:
    client.force_login(alice)
    for path in ("/page", "/api/whoami", "/v1/chat/whoami"):
        answer = client.get(path).json()
        assert answer == {
            "user": alice.pk,
            "tier": "free",
            "method": "session",
            "scope": f"user:{alice.pk}",
            "address": "127.0.0.1",
        }


def test_a_key_opens_the_apis_of_its_scopes_and_never_a_page(client: Client, alice: User) -> None:
    _, secret = create_api_key(alice)
    for path in ("/api/whoami", "/v1/chat/whoami"):
        answer = client.get(path, headers=bearer(secret)).json()
        assert (answer["user"], answer["method"]) == (alice.pk, "key")
        assert answer["scope"] == f"user:{alice.pk}"
    assert client.get("/page", headers=bearer(secret)).status_code == 403
    _, narrow = create_api_key(alice, scopes=["chat"])
    assert client.get("/v1/chat/whoami", headers=bearer(narrow)).status_code == 200
    refused = client.get("/api/whoami", headers=bearer(narrow))
    assert (refused.status_code, error_of(refused)["code"]) == (403, "insufficient_scope")


def test_a_key_may_come_as_anthropics_clients_send_it(client: Client, alice: User) -> None:
    _, secret = create_api_key(alice, scopes=["chat"])
    answer = client.get("/v1/chat/whoami", headers={"X-Api-Key": secret}).json()
    assert (answer["user"], answer["method"]) == (alice.pk, "key")
    refused = client.get("/api/whoami", headers={"X-Api-Key": secret})
    assert error_of(refused)["code"] == "insufficient_scope"
    unknown = client.get("/v1/chat/whoami", headers={"X-Api-Key": "vt_" + "a" * 43})
    assert error_of(unknown)["code"] == "invalid_api_key"


@pytest.mark.parametrize("with_cookie", [True, False])
def test_two_credentials_together_are_refused(
    client: Client, alice: User, bob: User, with_cookie: bool
) -> None:
    _, secret = create_api_key(bob)
    headers = bearer(secret)
    if with_cookie:
        client.force_login(alice)
    else:
        headers |= {"X-Api-Key": secret}
    for extra in ({}, {"X-Api-Key": secret}):
        response = client.get("/api/whoami", headers=headers | extra)
        assert (response.status_code, error_of(response)["code"]) == (400, "ambiguous_credentials")


def test_a_tier_may_have_no_keys(client: Client, alice: User) -> None:
    _, secret = create_api_key(alice)
    Tier.objects.filter(slug="free").update(features=["tools"])
    response = client.get("/api/whoami", headers=bearer(secret))
    assert (response.status_code, error_of(response)["code"]) == (403, "api_keys_not_allowed")


def test_a_rotated_key_has_one_secret(client: Client, alice: User) -> None:
    key, old = create_api_key(alice)
    new = rotate_api_key(key)
    assert client.get("/api/whoami", headers=bearer(new)).json()["user"] == alice.pk
    assert client.get("/api/whoami", headers=bearer(old)).status_code == 401
    revoke_api_key(key)
    assert client.get("/api/whoami", headers=bearer(new)).status_code == 401


@pytest.mark.parametrize("secret", NEAR_MISSES)
def test_what_is_no_key_is_refused(client: Client, alice: User, secret: str) -> None:
    create_api_key(alice)
    response = client.get("/v1/chat/whoami", headers=bearer(secret))
    assert (response.status_code, error_of(response)["code"]) == (401, "invalid_api_key")


def test_any_changed_letter_makes_a_key_unknown(client: Client, alice: User) -> None:
    _, secret = create_api_key(alice)
    for at in (3, 10, 11, 20, len(secret) - 1):
        changed = secret[:at] + ("A" if secret[at] != "A" else "B") + secret[at + 1 :]
        assert client.get("/v1/chat/whoami", headers=bearer(changed)).status_code == 401


@pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
def test_a_revoked_or_expired_key_is_refused(client: Client, alice: User, field: str) -> None:
    key, secret = create_api_key(alice)
    ApiKey.objects.filter(pk=key.pk).update(**{field: timezone.now() - timedelta(seconds=1)})
    assert client.get("/v1/chat/whoami", headers=bearer(secret)).status_code == 401


def test_a_suspended_user_is_refused_by_session_and_by_key(client: Client, alice: User) -> None:
    _, secret = create_api_key(alice)
    client.force_login(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.get("/api/whoami").status_code == 401
    response = Client().get("/v1/chat/whoami", headers=bearer(secret))
    assert (response.status_code, error_of(response)["code"]) == (403, "account_suspended")


def test_keys_are_kept_as_hashes_only(alice: User) -> None:
    key, secret = create_api_key(alice, name="notebook")
    stored = ApiKey.objects.filter(pk=key.pk).values().get()
    assert secret not in str(stored)
    assert secret.startswith(key.prefix)
    with pytest.raises(UnknownScope):
        create_api_key(alice, scopes=["admin"])


def test_the_last_use_is_written_at_most_once_a_minute(client: Client, alice: User) -> None:
    key, secret = create_api_key(alice)

    def last_used() -> Any:
        assert client.get("/v1/chat/whoami", headers=bearer(secret)).status_code == 200
        return ApiKey.objects.get(pk=key.pk).last_used_at

    first = last_used()
    assert first is not None
    assert last_used() == first
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=first - timedelta(minutes=2))
    assert last_used() > first


def test_a_cookie_needs_a_csrf_token_also_where_a_view_is_exempt(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    for path in ("/api/whoami", "/v1/chat/whoami"):
        refused = browser.post(path, "{}", content_type="text/plain")
        assert (refused.status_code, error_of(refused)["code"]) == (403, "csrf_failed")
    browser.get("/accounts/password/change/")  # a page with a form sets the cookie
    token = browser.cookies["vitrine_csrf"].value
    assert browser.post("/api/whoami", headers={"X-CSRFToken": token}).status_code == 200
    evil = {"X-CSRFToken": token, "Origin": "http://evil.example"}
    assert browser.post("/api/whoami", headers=evil).status_code == 403


def test_a_key_needs_no_csrf_token(alice: User) -> None:
    _, secret = create_api_key(alice)
    program = Client(enforce_csrf_checks=True)
    assert program.post("/v1/chat/whoami", headers=bearer(secret)).status_code == 200


def test_errors_are_json_under_the_apis_and_pages_elsewhere(client: Client, alice: User) -> None:
    client.force_login(alice)
    missing = client.get("/v1/nothing")
    assert (missing.status_code, error_of(missing)["code"]) == (404, "not_found")
    assert "nothing at this address" in client.get("/nothing").content.decode()
    assert client.get("/deny").status_code == 403
    client.raise_request_exception = False
    failed = client.get("/api/fail/x")
    assert (failed.status_code, error_of(failed)["type"]) == (500, "server_error")


def test_signing_in_by_cookie_costs_two_queries(
    client: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    client.force_login(alice)
    client.get("/page")
    with django_assert_max_num_queries(1):  # the user with the tier; the session is cached
        client.get("/page")
