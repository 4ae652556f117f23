"""The door of /scim/v2: who comes in, what it says of itself, and what it does with bad input."""

import json
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings
from django.urls import get_resolver

from tests.conftest import PASSWORD
from tests.webapp.scim_client import TOKEN, Directory
from webapp.api_keys import create_api_key
from webapp.models import User
from webapp.providers import SignInProvider
from webapp.scim.configuration import scim_provider, scim_token

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

DOORS = [
    ("GET", "/ServiceProviderConfig"),
    ("GET", "/ResourceTypes"),
    ("GET", "/ResourceTypes/User"),
    ("GET", "/Schemas"),
    ("GET", "/Schemas/urn:ietf:params:scim:schemas:core:2.0:User"),
    *[
        (method, f"/{kind}{rest}")
        for kind in ("Users", "Groups")
        for method, rest in (
            ("GET", ""),
            ("POST", ""),
            ("POST", "/.search"),
            ("GET", "/1"),
            ("PUT", "/1"),
            ("PATCH", "/1"),
            ("DELETE", "/1"),
        )
    ],
    ("POST", "/.search"),
    ("POST", "/Bulk"),
    ("GET", "/Me"),
    ("GET", "/Nothing/here"),
]


def charlies(charlie: User, admin: User) -> list[tuple[str, Client, dict[str, str]]]:
    """Who is not the directory, and what each sends."""
    _, key = create_api_key(charlie)
    member, boss = Client(), Client()
    member.force_login(charlie)
    boss.force_login(admin)
    nobody = Client()
    return [
        ("nothing", nobody, {}),
        ("a wrong token", nobody, {"Authorization": f"Bearer {TOKEN[:-1]}"}),
        ("a longer token", nobody, {"Authorization": f"Bearer {TOKEN}x"}),
        ("another scheme", nobody, {"Authorization": f"Basic {TOKEN}"}),
        ("no word", nobody, {"Authorization": "Bearer"}),
        ("half a character", nobody, {"Authorization": "Bearer ü\udcff"}),
        ("an API key", nobody, {"Authorization": f"Bearer {key}"}),
        ("an API key elsewhere", nobody, {"X-Api-Key": TOKEN}),
        ("a session", member, {}),
        ("an administrator's session", boss, {}),
    ]


def test_nobody_but_the_directory_gets_in(
    scim: Directory, charlie: User, admin: User, settings: Any
) -> None:
    from webapp.rate_limits import LIMITS

    for name, client, headers in charlies(charlie, admin):
        for method, path in DOORS:
            response = client.generic(
                method, f"/scim/v2{path}", b"{}", "application/json", headers=headers
            )
            assert response.status_code in (401, 429), f"{name}: {method} {path}"
            assert response.headers["Content-Type"] == "application/scim+json"
            told = response.json()
            assert told["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
            assert told["status"] == str(response.status_code)
    assert LIMITS["scim"]
    assert User.objects.count() == 2


def test_all_doors_are_tried(scim: Directory) -> None:
    import tests.webapp.urls_with_scim as urls

    included = next(one for one in urls.urlpatterns if str(one.pattern) == "scim/v2/")
    routes = {str(pattern.pattern) for pattern in included.url_patterns}
    resolver = get_resolver(urls.__name__)
    tried = {resolver.resolve(f"/scim/v2{path}").route for _, path in DOORS}
    assert tried == {f"scim/v2/{route}" for route in routes}


def test_wrong_tokens_are_few_and_the_right_one_is_never_shut_out(scim: Directory) -> None:
    wrong = Directory("x" * 40)
    statuses = [wrong.send("GET", "/Users").status_code for _ in range(32)]
    assert statuses[:30] == [401] * 30
    assert statuses[-1] == 429
    refused = wrong.send("GET", "/Users")
    assert int(refused.headers["Retry-After"]) >= 1
    assert scim.send("GET", "/Users").status_code == 200


def test_without_a_token_there_is_nothing(admin: User) -> None:
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {TOKEN}"}):
        for path in ("/scim/v2/Users", "/scim/v2/ServiceProviderConfig", "/scim/v2/"):
            assert Client().get(path, headers=headers).status_code == 404


def test_an_empty_token_opens_nothing_even_where_the_addresses_are(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.webapp.urls_with_scim"
    assert Directory("").send("GET", "/Users").status_code == 401
    assert Client().get("/scim/v2/Users", headers={"Authorization": "Bearer "}).status_code == 401


def test_a_session_beside_the_token_changes_nothing(scim: Directory, charlie: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.login(email=charlie.email, password=PASSWORD)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = {"userName": "dora@example.org", "schemas": []}
    made = client.post("/scim/v2/Users", body, "application/scim+json", headers=headers)
    assert made.status_code == 201


def test_another_host_is_refused_in_its_shape(scim: Directory) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example.com"}
    response = Client().get("/scim/v2/Users", headers=headers)
    assert response.status_code == 400
    assert response.json()["status"] == "400"


@override_settings(HTTPS=True)
def test_addresses_are_as_the_directory_reaches_us(scim: Directory) -> None:
    config = scim.ask("GET", "/ServiceProviderConfig")
    assert config["meta"]["location"] == "https://testserver/scim/v2/ServiceProviderConfig"


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["short", "x" * 31, "with space " * 5, "ü" * 40])
def test_a_weak_token_stops_the_start(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("VITRINE_SCIM_TOKEN", token)
    with pytest.raises(ImproperlyConfigured, match="VITRINE_SCIM_TOKEN") as told:
        scim_token()
    assert token not in str(told.value)


def test_the_token_may_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("VITRINE_SCIM_TOKEN_FILE", str(tmp_path / "token"))
    assert scim_token() == TOKEN


def test_the_provider_must_be_one_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    work = SignInProvider("work", "Work", "openid_connect", "id", "secret")
    assert scim_provider(TOKEN, (work,)) == ""
    monkeypatch.setenv("VITRINE_SCIM_PROVIDER", "work")
    assert scim_provider(TOKEN, (work,)) == "work"
    for token, providers in ((TOKEN, ()), ("", (work,))):
        with pytest.raises(ImproperlyConfigured, match="VITRINE_SCIM_PROVIDER"):
            scim_provider(token, providers)


# --- what it says of itself -----------------------------------------------------------------------


def test_it_claims_what_it_does(scim: Directory) -> None:
    config = scim.ask("GET", "/ServiceProviderConfig")
    supported = {name: one["supported"] for name, one in config.items() if "supported" in one}
    assert supported == {
        "patch": True,
        "bulk": False,
        "filter": True,
        "changePassword": False,
        "sort": True,
        "etag": False,
    }
    assert config["filter"]["maxResults"] == 200
    kinds = scim.ask("GET", "/ResourceTypes")["Resources"]
    assert {(one["id"], one["endpoint"]) for one in kinds} == {
        ("User", "/Users"),
        ("Group", "/Groups"),
    }
    schemas = scim.ask("GET", "/Schemas")
    names = {attribute["name"] for one in schemas["Resources"] for attribute in one["attributes"]}
    assert not names & {"password", "roles", "entitlements"}
    assert scim.send("GET", "/Schemas", filter="id pr").status_code == 403
    assert scim.send("POST", "/Bulk", {"a": 1}).status_code == 501
    assert scim.send("GET", "/Me").status_code == 501


def test_a_wrong_method_is_told_the_right_ones(scim: Directory) -> None:
    response = scim.send("PUT", "/Users")
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, POST"


# --- bad input ------------------------------------------------------------------------------------

DEEP = b'{"userName":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BODIES = {
    "no JSON": b"{",
    "no object": b"[1]",
    "nothing": b"",
    "deep": DEEP,
    "no text": b"\xff\xfe",
    "a number as a name": b'{"userName": 5}',
    "an object as a name": b'{"userName": {"a": 1}}',
    "no name": b'{"displayName": "x"}',
    "an empty name": b'{"userName": " "}',
    "no address": b'{"userName": "dora"}',
    "NUL": b'{"userName": "dora@example.org", "displayName": "a\\u0000b"}',
    "NUL in a name": b'{"userName": "do\\u0000ra@example.org"}',
    "half a character": b'{"userName": "dora@example.org", "displayName": "\\ud800"}',
    "a long name": json.dumps({"userName": "x" * 300 + "@example.org"}).encode(),
    "a long display name": json.dumps({"userName": "a@b.org", "displayName": "x" * 121}).encode(),
    "maybe": b'{"userName": "dora@example.org", "active": "maybe"}',
    "addresses as text": b'{"userName": "dora@example.org", "emails": "a@b.org"}',
    "no addresses": b'{"userName": "dora@example.org", "emails": [{"value": "nothing"}]}',
    "two lines": b'{"userName": "dora@example.org", "emails": [{"value": "a@b.org\\nBcc: c@d.org"}]}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_bad_body_makes_nobody(scim: Directory, body: bytes) -> None:
    told = scim.ask("POST", "/Users", body, status=400)
    assert told["scimType"] in ("invalidSyntax", "invalidValue")
    assert not User.objects.exists()


def test_a_body_may_be_large_and_not_endless(scim: Directory) -> None:
    assert scim.send("POST", "/Users", b" " * (5 * 2**20)).status_code == 413
    assert scim.send("POST", "/Users", b" " * (11 * 2**20)).status_code == 413


NO_IDS = [
    *["1", "u1x", "g1x", "ug1", "u0", "u-1", "0", "-1", "01"],
    *["u1.0", "nobody", "１", "u１", "%00", "u1%20"],
]


@pytest.mark.parametrize("key", [*NO_IDS, "u" + "9" * 18, "g" + "9" * 40, "' OR 1=1"])
@pytest.mark.parametrize("kind", ["Users", "Groups"])
def test_an_id_that_is_none_is_missing(scim: Directory, kind: str, key: str) -> None:
    for method in ("GET", "DELETE"):
        told = scim.ask(method, f"/{kind}/{key}", status=404)
        assert told["status"] == "404"


OPERATIONS: dict[str, Any] = {
    "none": [],
    "no list": {"op": "add"},
    "a text": ["add"],
    "another": [{"op": "steal", "path": "active", "value": True}],
    "no path": [{"op": "remove"}],
    "no value": [{"op": "add", "path": "displayName"}],
    "the id": [{"op": "replace", "path": "id", "value": "7"}],
    "the groups": [{"op": "add", "path": "groups", "value": [{"value": "1"}]}],
    "a broken path": [{"op": "replace", "path": "emails[type eq", "value": "x"}],
    "a broken text": [{"op": "replace", "path": "displayName", "value": "\ud800"}],
    "a list": [{"op": "replace", "path": "displayName", "value": ["x"]}],
    "no name": [{"op": "remove", "path": "userName"}],
    "no addresses": [{"op": "remove", "path": "emails"}],
    "neither": [{"op": "remove", "path": "active"}],
    "deep": [{"op": "add", "path": "(" * 500 + "a" + ")" * 500, "value": 1}],
}


@pytest.mark.parametrize("operations", OPERATIONS.values(), ids=OPERATIONS)
def test_a_bad_patch_changes_nothing(scim: Directory, operations: Any) -> None:
    dora = scim.person()
    good = {"op": "replace", "path": "displayName", "value": "Changed"}
    if isinstance(operations, list) and operations:
        operations = [good, *operations]
    body = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": operations,
    }
    told = scim.ask("PATCH", f"/Users/{dora['id']}", body, status=400)
    assert told["scimType"]
    assert scim.ask("GET", f"/Users/{dora['id']}") == dora
