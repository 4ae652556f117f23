"""A person makes, limits, rotates and revokes keys. A program does none of it, and no stranger."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.conftest import PASSWORD
from webapp.api_keys import create_api_key, find_api_key
from webapp.models import ApiKey, Tier, User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_redis")]

FORM = {"name": "notebook", "scopes": ["chat"], "days": "30", "model_names": "small\nlab-*\n"}


@pytest.fixture
def tab(alice: User) -> Client:
    """Alice's browser, in which she has just given her password again."""
    return signed_in(alice)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    response = client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert response.status_code == 302
    return client


def secret_on(response: Any) -> str:
    found = re.search(r'value="(vt_[^"]+)"', response.content.decode())
    assert found, response.content.decode()
    return found[1]


def test_a_key_is_made_on_the_page_and_shown_once(tab: Client, alice: User) -> None:
    assert "You have no API keys" in tab.get("/settings/keys").content.decode()
    assert tab.get("/settings/keys/new").status_code == 200
    response = tab.post("/settings/keys/new", FORM)
    assert "no-store" in response.headers["Cache-Control"]
    secret = secret_on(response)
    key = find_api_key(secret)
    assert key is not None
    assert (key.user, key.name, key.scopes) == (alice, "notebook", ["chat"])
    assert key.model_names == ["small", "lab-*"]
    assert key.expires_at is not None
    assert abs(key.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)
    listed = tab.get("/settings/keys").content.decode()
    assert "notebook" in listed
    assert secret not in listed


def test_an_old_session_asks_for_the_password_first(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    refused = client.post("/settings/keys/new", FORM)
    assert refused.status_code == 302
    assert refused.headers["Location"].startswith("/accounts/reauthenticate/")
    body = {"name": "x", "scopes": ["chat"]}
    by_api = client.post("/api/keys", body, content_type="application/json")
    assert by_api.status_code == 403
    assert by_api.json()["error"]["code"] == "reauthentication_required"
    assert not ApiKey.objects.exists()
    wrong = client.post(refused.headers["Location"], {"password": "not it"})
    assert wrong.status_code == 200
    # With the password the form that waited is sent.
    resumed = client.post(refused.headers["Location"], {"password": PASSWORD})
    assert find_api_key(secret_on(resumed)) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"scopes": []},
        {"scopes": ["admin:read"]},
        {"scopes": ["everything"]},
        {"days": "-1"},
        {"model_names": " \n "},
        {"model_names": "x" * 201},
        {"requests_per_minute": "-1"},
        {"tokens_per_day": "1e99"},
    ],
)
def test_nonsense_makes_no_key(tab: Client, wrong: dict[str, Any]) -> None:
    response = tab.post("/settings/keys/new", FORM | wrong)
    assert response.status_code == 400
    assert not ApiKey.objects.exists()


def test_a_key_is_changed_rotated_and_revoked(tab: Client, alice: User) -> None:
    key, old = create_api_key(alice, name="script")
    address = f"/settings/keys/{key.pk}"
    changed = {"name": "job", "model_names": "small", "requests_per_minute": "5"}
    assert tab.post(address, changed).headers["Location"] == "/settings/keys"
    key.refresh_from_db()
    assert (key.name, key.model_names, key.requests_per_minute) == ("job", ["small"], 5)
    new = secret_on(tab.post(f"{address}/rotate"))
    assert find_api_key(old) is None
    assert find_api_key(new) == key
    tab.post(f"{address}/revoke")
    assert find_api_key(new) is None
    assert tab.get(address).status_code == 404
    assert "1 key that has ended" in tab.get("/settings/keys").content.decode()


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_what_ends_a_secret_asks_first_and_says_which_key(
    tab: Client, alice: User, action: str
) -> None:
    key, secret = create_api_key(alice, name="night job")
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now() - timedelta(days=3))
    asked = tab.get(f"/settings/keys/{key.pk}/{action}")
    assert asked.status_code == 200
    html = asked.content.decode()
    assert "night job?</h1>" in html
    assert re.search(r"Used <time [^>]+>3\sdays</time> ago", html)
    assert find_api_key(secret) == key, "a question ends nothing"


def test_the_wish_for_a_new_secret_outlives_the_fresh_sign_in(alice: User) -> None:
    key, _ = create_api_key(alice, name="night job")
    client = Client()
    client.force_login(alice)
    asked = client.get(f"/settings/keys/{key.pk}/rotate")
    again = client.post(asked.headers["Location"], {"password": PASSWORD}, follow=True)
    assert "A new secret for night job?" in again.content.decode()


def test_keys_over_rest(tab: Client, alice: User) -> None:
    body = {"name": "ci", "scopes": ["embeddings"], "tokens_per_day": 1000}
    made = tab.post("/api/keys", body, content_type="application/json")
    assert made.status_code == 201
    key = made.json()
    assert find_api_key(key["secret"]) is not None
    (listed,) = tab.get("/api/keys").json()["items"]
    assert listed == {name: value for name, value in key.items() if name != "secret"}
    address = f"/api/keys/{key['id']}"
    changed = tab.patch(address, {"tokens_per_day": None}, content_type="application/json").json()
    assert (changed["tokens_per_day"], changed["name"]) == (None, "ci")
    rotated = tab.post(f"{address}/rotate").json()["secret"]
    assert (find_api_key(key["secret"]), find_api_key(rotated) is None) == (None, False)
    assert tab.delete(address).status_code == 204
    assert find_api_key(rotated) is None
    assert tab.delete(address).status_code == 404


@pytest.mark.parametrize("scopes", [["nothing"], [], ["admin:read"]])
def test_rest_refuses_scopes_that_are_not_to_be_had(tab: Client, scopes: list[str]) -> None:
    body = {"name": "ci", "scopes": scopes}
    response = tab.post("/api/keys", body, content_type="application/json")
    assert response.status_code in (400, 403)
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires_at": "9999-12-31T23:59:59-14:00"},
        {"expires_at": "0001-01-01T00:00:00+14:00"},
        {"expires_at": "9999-12-31T23:59:59"},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"name": "a\0"},
        {"name": "\ud800"},
        {"model_names": ["\0"]},
        {"model_names": ["\ud800"]},
        {"model_names": ["a" * 201]},
        {"model_names": [""]},
        {"scopes": ["a" * 201]},
        {"scopes": ["chat"] * 100_000},
    ],
    ids=lambda wrong: ascii(wrong)[:50],
)
def test_what_cannot_be_kept_or_read_again_is_refused(tab: Client, wrong: dict[str, Any]) -> None:
    body = {"name": "ci", "scopes": ["chat"]} | wrong
    response = tab.post("/api/keys", body, content_type="application/json")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_value"
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("wrong", [{"name": "a\0"}, {"model_names": ["\ud800"]}])
def test_a_change_is_checked_as_well(tab: Client, alice: User, wrong: dict[str, Any]) -> None:
    key, _ = create_api_key(alice)
    response = tab.patch(f"/api/keys/{key.pk}", wrong, content_type="application/json")
    assert response.status_code == 400


def test_an_end_without_a_zone_is_utc_and_items_count_once(tab: Client) -> None:
    end = (timezone.now() + timedelta(days=3650)).replace(microsecond=0)
    body = {"name": "ci", "expires_at": end.replace(tzinfo=None).isoformat()}
    body |= {"scopes": ["chat", "chat"], "model_names": ["b", "a", "b"]}
    assert tab.post("/api/keys", body, content_type="application/json").status_code == 201
    key = ApiKey.objects.get()
    assert (key.expires_at, key.scopes, key.model_names) == (end, ["chat"], ["b", "a"])
    assert tab.get("/api/keys").status_code == 200


def test_the_console_lets_a_key_end_within_ten_years(
    client: Client, alice: User, admin: User
) -> None:
    key, _ = create_api_key(alice, name="job", expires_at=timezone.now() - timedelta(days=1))
    client.force_login(admin)
    address = f"/admin/webapp/apikey/{key.pk}/change/"
    form = {"name": "task", "model_names": "*", "expires_at_1": "12:00:00"}
    ended = {
        "expires_at_0": f"{key.expires_at:%Y-%m-%d}",
        "expires_at_1": f"{key.expires_at:%H:%M:%S}",
    }
    for day in ("9999-12-31", "2001-01-01"):
        refused = client.post(address, form | {"expires_at_0": day})
        assert "within ten years" in refused.content.decode()
    assert client.post(address, form | ended).status_code == 302, "what it was may stay"
    key.refresh_from_db()
    assert key.name == "task"


def test_no_key_can_make_see_or_end_keys(client: Client, alice: User) -> None:
    key, secret = create_api_key(alice)
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"name": "child", "scopes": ["chat"]}
    address = f"/api/keys/{key.pk}"
    for response in (
        client.get("/api/keys", headers=headers),
        client.post("/api/keys", body, content_type="application/json", headers=headers),
        client.patch(address, body, content_type="application/json", headers=headers),
        client.post(f"{address}/rotate", headers=headers),
        client.delete(address, headers=headers),
    ):
        assert response.status_code == 403
        assert response.json()["error"]["code"] == "insufficient_scope"
    assert ApiKey.objects.get().is_usable(timezone.now())


def test_charlie_finds_no_key_of_alices(tab: Client, charlie: User) -> None:
    alices = ApiKey.objects.create(
        user=User.objects.get(email="alice@example.org"), name="hers", scopes=["chat"]
    )
    client = signed_in(charlie)
    for number in (alices.pk, alices.pk + 1000):
        assert client.get(f"/settings/keys/{number}").status_code == 404
        assert client.post(f"/settings/keys/{number}/revoke").status_code == 404
        assert client.post(f"/settings/keys/{number}/rotate").status_code == 404
        assert client.delete(f"/api/keys/{number}").status_code == 404
        assert client.post(f"/api/keys/{number}/rotate").status_code == 404
    assert "hers" not in client.get("/settings/keys").content.decode()
    alices.refresh_from_db()
    assert alices.revoked_at is None


def test_a_plan_without_keys_says_so(tab: Client, alice: User) -> None:
    Tier.objects.filter(slug="free").update(features=[])
    assert "Your plan has no API keys" in tab.get("/settings/keys").content.decode()
    assert tab.get("/settings/keys/new").status_code == 404
    body = {"name": "ci", "scopes": ["chat"]}
    refused = tab.post("/api/keys", body, content_type="application/json")
    assert refused.json()["error"]["code"] == "api_keys_not_allowed"


def test_only_staff_may_read_everybodys_usage(client: Client, admin: User, alice: User) -> None:
    _, hers = create_api_key(alice, scopes=["admin:read"])
    _, admins = create_api_key(admin, scopes=["admin:read"])
    _, narrow = create_api_key(admin)
    for secret, status in ((hers, 403), (narrow, 403), (admins, 200)):
        headers = {"Authorization": f"Bearer {secret}"}
        assert client.get("/api/admin/usage", headers=headers).status_code == status
