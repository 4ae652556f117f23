"""What a directory does with accounts, as Okta and Microsoft Entra ask for it, and what it may not."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import connection
from django.test import Client

from chat.models import Conversation
from tests.conftest import PASSWORD
from tests.sites import wait_until
from tests.webapp.scim_client import ENTERPRISE, PATCH, TOKEN, USER, Directory
from webapp.api_keys import create_api_key
from webapp.models import ScimChange, ScimPerson, SignIn, Tier, User
from webapp.own_data import account_of
from webapp.security_events import events_of
from webapp.tenancy import as_system, as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]

OFF = {"op": "replace", "value": {"active": False}}
ON = {"op": "replace", "value": {"active": True}}


def confirm(user: User) -> User:
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def path_of(user: User) -> str:
    return f"/Users/u{user.pk}"


# --- making ---------------------------------------------------------------------------------------


def test_somebody_made_by_okta_is_an_account_without_password_or_right(
    scim: Directory,
) -> None:
    assert scim.found("/Users", 'userName eq "dora@example.org"') == []
    told = scim.person(password="t1meMa$heen", locale="en-US", title="Dr")
    dora = User.objects.get()
    assert told["id"] == f"u{dora.pk}"
    assert told["schemas"] == [USER]
    assert told["meta"]["location"] == f"http://testserver/scim/v2/Users/u{dora.pk}"
    assert told["meta"]["resourceType"] == "User"
    assert told["name"] == {"givenName": "Dora", "familyName": "Doe"}
    assert told["emails"] == [{"value": "dora@example.org", "type": "work", "primary": True}]
    assert (told["externalId"], told["active"]) == ("ext-dora", True)
    assert "password" not in told
    assert "groups" not in told
    assert (dora.email, dora.name, dora.tier_id) == ("dora@example.org", "Dora Doe", "free")
    assert not dora.has_usable_password()
    assert (dora.is_active, dora.is_staff, dora.is_superuser) == (True, False, False)
    assert EmailAddress.objects.get(user=dora).verified
    assert scim.found("/Users", 'userName eq "DORA@example.org"') == ["dora@example.org"]
    assert scim.ask("GET", path_of(dora)) == told
    assert ScimChange.objects.get().action == "made"


def test_somebody_made_by_entra_has_a_name_there_that_is_no_address(scim: Directory) -> None:
    body = {
        "schemas": [USER, ENTERPRISE],
        "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
        "userName": "Test_User_ab6490ee",
        "active": True,
        "emails": [{"primary": True, "type": "work", "value": "Jo@Example.org"}],
        "meta": {"resourceType": "User"},
        "name": {"formatted": "givenName familyName", "familyName": "F", "givenName": "G"},
        "roles": [],
        ENTERPRISE: {"department": "bob", "manager": {"value": "x"}},
    }
    told = scim.ask("POST", "/Users", body, status=201)
    user = User.objects.get()
    assert (user.email, user.name, user.scim.user_name) == (
        "jo@example.org",
        "G F",
        "Test_User_ab6490ee",
    )
    assert told["schemas"] == [USER]
    assert scim.found("/Users", f'externalId eq "{body["externalId"]}"')


def test_the_sign_up_policy_is_not_the_directorys(scim: Directory, settings: Any) -> None:
    from webapp.signup_policy import SignupPolicy

    settings.SIGNUP = SignupPolicy("closed")
    scim.person()
    assert User.objects.count() == 1


def test_who_was_made_sets_a_password_by_the_letter(scim: Directory, settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    scim.person()
    User.objects.create_superuser("admin@example.org", PASSWORD)
    Client().post("/accounts/password/reset/", {"email": "dora@example.org"})
    wait_until(lambda: mail.outbox, what="the letter")
    link = re.search(r"/accounts/password/reset/key/\S+", mail.outbox[0].body)
    assert link
    client = Client()
    form = client.get(link[0], follow=True)
    words = {"password1": PASSWORD, "password2": PASSWORD}
    done = client.post(form.request["PATH_INFO"], words)
    assert done.status_code == 302, done.content.decode()
    assert Client().login(email="dora@example.org", password=PASSWORD)


MORE = {
    "id": "1",
    "is_staff": True,
    "isStaff": True,
    "is_superuser": True,
    "tier": "admin",
    "tier_id": "admin",
    "cost_per_month": "999",
    "password": "hunter2hunter2",
    "groups": [{"value": "1"}],
    "user_permissions": [1],
    "roles": [{"value": "admin", "primary": True}],
    "entitlements": [{"value": "admin"}],
    "scim": {"is_made": True},
    "is_made": True,
    "date_joined": "2001-01-01T00:00:00Z",
}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "paths"])
def test_no_attribute_leads_to_a_right(scim: Directory, method: str) -> None:
    from django.contrib.auth.models import Group

    Group.objects.create(pk=1, name="Bosses")
    before = Tier.objects.count()
    dora = scim.person("dora", **(MORE if method == "POST" else {}))
    path = f"/Users/{dora['id']}"
    whole = {key: value for key, value in MORE.items() if key not in ("id", "groups")}
    if method == "PUT":
        scim.ask("PUT", path, {**dora, **MORE})
    elif method == "PATCH":
        scim.patch(path, {"op": "add", "value": whole})
    elif method == "paths":
        for name, value in whole.items():
            scim.patch(path, {"op": "replace", "path": name, "value": value})
    user = User.objects.get()
    assert (user.is_staff, user.is_superuser, user.tier_id) == (False, False, "free")
    assert user.cost_per_month is None
    assert not user.has_usable_password()
    assert not user.groups.exists()
    assert not user.user_permissions.exists()
    assert user.date_joined.year > 2001
    assert Tier.objects.count() == before


def test_nobody_is_made_twice(scim: Directory, alice: User) -> None:
    scim.person()
    for email, name in (
        ("dora@example.org", "other"),
        ("DORA@EXAMPLE.ORG", "other"),
        ("other@example.org", "Dora@example.org"),
        ("alice@example.org", "other"),
        ("other@example.org", "ALICE@example.org"),
    ):
        body = {"schemas": [USER], "userName": name, "emails": [{"value": email}]}
        told = scim.ask("POST", "/Users", body, status=409)
        assert told["scimType"] == "uniqueness"
    assert User.objects.count() == 2
    assert EmailAddress.objects.count() == 1


def test_of_many_at_once_one_is_made(scim: Directory) -> None:
    barrier = threading.Barrier(6)

    def post(number: int) -> int:
        barrier.wait()
        body = {
            "schemas": [USER],
            "userName": "dora@example.org",
            "externalId": str(number),
        }
        try:
            return int(scim.send("POST", "/Users", body).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(post, range(6)))
    assert statuses == [201, *[409] * 5]
    assert User.objects.count() == ScimPerson.objects.count() == 1
    assert EmailAddress.objects.count() == 1
    assert ScimChange.objects.count() == 1


# --- changing -------------------------------------------------------------------------------------


def test_entra_changes_as_it_writes(scim: Directory) -> None:
    path = f"/Users/{scim.person()['id']}"
    told = scim.patch(
        path,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "new@example.org"},
        {"op": "Replace", "path": "name.familyName", "value": "Updated"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Bicycles"},
        {"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "1"},
        {"op": "Add", "path": 'roles[primary eq "True"].value', "value": "admin"},
        {"op": "Replace", "value": {"name.givenName": "Dorothea", f"{ENTERPRISE}:x": "y"}},
    )
    assert told["emails"][0]["value"] == "new@example.org"
    assert told["name"] == {"givenName": "Dorothea", "familyName": "Updated"}
    assert told["displayName"] == "Dorothea Updated", "it was made of the names"
    assert told["userName"] == "dora@example.org"
    address = EmailAddress.objects.get()
    assert (address.email, address.verified, address.primary) == ("new@example.org", True, True)
    (event,) = events_of(address.user_id)
    assert (event["kind"], event["how"]) == ("address", "changed by SCIM")
    told = scim.patch(path, {"op": "Replace", "path": "active", "value": "False"})
    assert told["active"] is False


def test_okta_replaces_the_whole(scim: Directory) -> None:
    dora = scim.person()
    told = scim.ask(
        "PUT",
        f"/Users/{dora['id']}",
        {
            "schemas": [USER],
            "id": dora["id"],
            "userName": "dd@example.org",
            "name": {"givenName": "D", "familyName": "D"},
            "emails": [{"value": "dd@example.org", "primary": True}],
            "active": True,
            "meta": dora["meta"],
        },
    )
    assert (told["userName"], told["displayName"]) == ("dd@example.org", "D D")
    assert "externalId" not in told
    assert User.objects.get().email == "dd@example.org"
    bare = scim.ask("PUT", f"/Users/{dora['id']}", {"schemas": [USER], "userName": "dd"})
    assert bare["active"] is True
    assert bare["emails"][0]["value"] == "dd@example.org"
    assert "name" not in bare


def test_a_change_to_somebody_elses_address_is_refused_whole(scim: Directory, alice: User) -> None:
    dora = scim.person()
    email = {"op": "replace", "path": "emails", "value": [{"value": alice.email}]}
    name = {"op": "replace", "path": "userName", "value": alice.email}
    for operation in (email, name):
        other = {"op": "replace", "path": "displayName", "value": "X"}
        told = scim.patch(f"/Users/{dora['id']}", other, operation, status=409)
        assert told["scimType"] == "uniqueness"
    assert scim.ask("GET", f"/Users/{dora['id']}") == dora


def test_what_changes_nothing_is_not_noted(scim: Directory) -> None:
    dora = scim.person()
    scim.ask("PUT", f"/Users/{dora['id']}", dora)
    scim.patch(f"/Users/{dora['id']}", ON, ON)
    assert [one.action for one in ScimChange.objects.all()] == ["made"]


# --- disabling ------------------------------------------------------------------------------------


def test_who_is_disabled_is_out_at_once(scim: Directory) -> None:
    dora = User.objects.get(pk=scim.person()["id"][1:])
    dora.set_password(PASSWORD)
    dora.save()
    _, key = create_api_key(dora)
    browser = Client()
    assert browser.login(email=dora.email, password=PASSWORD)
    with_key = {"Authorization": f"Bearer {key}"}
    assert browser.get("/settings/keys").status_code == 200
    assert Client().get("/v1/models", headers=with_key).status_code == 200
    tokens = Client().post(
        "/api/auth/token", {"email": dora.email, "password": PASSWORD}, "application/json"
    )
    access = {"Authorization": f"Bearer {tokens.json()['access_token']}"}
    assert Client().get("/v1/models", headers=access).status_code == 200
    assert scim.patch(path_of(dora), OFF)["active"] is False
    dora.refresh_from_db()
    assert not dora.is_active
    with as_system():
        assert not SignIn.objects.exists()
    assert browser.get("/settings/keys").status_code == 302
    assert Client().get("/v1/models", headers=with_key).status_code == 403
    assert Client().get("/v1/models", headers=access).status_code == 401
    scim.patch(path_of(dora), ON)
    assert browser.get("/settings/keys").status_code == 302, "that sign-in has ended for good"
    assert Client().get("/v1/models", headers=access).status_code == 401
    assert Client().get("/v1/models", headers=with_key).status_code == 200
    actions = list(ScimChange.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["made", "disabled", "enabled"]


def test_a_suspension_in_the_console_is_the_consoles_to_end(scim: Directory) -> None:
    dora = scim.person()
    User.objects.update(is_active=False)
    assert scim.patch(f"/Users/{dora['id']}", ON)["active"] is False
    assert scim.ask("PUT", f"/Users/{dora['id']}", dora)["active"] is False
    User.objects.update(is_active=True)
    assert scim.ask("PUT", f"/Users/{dora['id']}", dora)["active"] is True


def test_the_last_administrator_stays(scim: Directory, admin: User) -> None:
    confirm(admin)
    scim.patch(path_of(admin), OFF, status=409)
    scim.ask("DELETE", path_of(admin), status=403)
    ScimPerson.objects.create(user=admin, user_name=admin.email, is_made=True)
    scim.patch(path_of(admin), OFF, status=409)
    told = scim.ask("DELETE", path_of(admin), status=409)
    assert "last" in told["detail"]
    admin.refresh_from_db()
    assert admin.is_active
    other = User.objects.create_superuser("other@example.org", PASSWORD)
    assert scim.patch(path_of(admin), OFF)["active"] is False
    confirm(other)
    scim.patch(path_of(other), OFF, status=409)


def test_of_two_administrators_at_once_one_stays(scim: Directory, admin: User) -> None:
    other = User.objects.create_superuser("other@example.org", PASSWORD)
    barrier = threading.Barrier(2)

    def disable(user: User) -> int:
        barrier.wait()
        try:
            body = {"schemas": [PATCH], "Operations": [OFF]}
            return int(scim.send("PATCH", path_of(user), body).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        statuses = sorted(pool.map(disable, [admin, other]))
    assert statuses == [200, 409]
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


def test_an_administrators_address_is_their_own(scim: Directory, admin: User) -> None:
    confirm(admin)
    ScimPerson.objects.create(user=admin, user_name=admin.email, is_made=True)
    email = {"op": "replace", "path": "emails", "value": [{"value": "evil@example.org"}]}
    told = scim.patch(path_of(admin), email, status=400)
    assert told["scimType"] == "mutability"
    admin.refresh_from_db()
    assert admin.email == "admin@example.org"


# --- whom it finds here ---------------------------------------------------------------------------


def test_who_is_here_already_is_found_named_and_disabled(scim: Directory, alice: User) -> None:
    confirm(alice)
    assert scim.found("/Users", f'userName eq "{alice.email}"') == [alice.email]
    told = scim.patch(
        path_of(alice), {"op": "add", "value": {"externalId": "ext-alice", "displayName": "A"}}
    )
    assert (told["externalId"], told["displayName"]) == ("ext-alice", "A")
    email = {"op": "replace", "path": "emails", "value": [{"value": "mine@evil.example"}]}
    assert scim.patch(path_of(alice), email, status=400)["scimType"] == "mutability"
    scim.ask("DELETE", path_of(alice), status=403)
    scim.patch(path_of(alice), OFF)
    alice.refresh_from_db()
    assert (alice.email, alice.is_active) == ("alice@example.org", False)
    actions = ScimChange.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["found", "changed", "disabled"]


def test_who_signed_up_with_an_address_that_nobody_confirmed_is_only_disabled(
    scim: Directory, charlie: User
) -> None:
    name = {"op": "replace", "path": "displayName", "value": "The boss"}
    told = scim.patch(path_of(charlie), name, status=403)
    assert "confirm" in told["detail"]
    assert not ScimPerson.objects.exists()
    path, before = path_of(charlie), (charlie.name, charlie.email)
    more = [
        {"op": "replace", "path": "displayName", "value": "The boss"},
        {"op": "replace", "path": "userName", "value": "boss"},
        {"op": "replace", "path": "externalId", "value": "ext-boss"},
        {"op": "replace", "path": "emails", "value": [{"value": "boss@example.org"}]},
    ]
    told = scim.patch(path, *more, OFF)
    assert (told["active"], told["userName"]) == (False, charlie.email)
    scim.ask("PUT", path, {"schemas": [USER], "userName": "boss", "active": False})
    scim.patch(path, *more, status=403)
    scim.patch(path, ON, status=403)
    charlie.refresh_from_db()
    assert not charlie.is_active
    assert (charlie.name, charlie.email) == before
    row = ScimPerson.objects.get()
    assert (row.user_name, row.external_id) == (charlie.email, "")
    assert EmailAddress.objects.filter(user=charlie, email__startswith="boss").count() == 0


# --- the end --------------------------------------------------------------------------------------


def test_who_is_deleted_takes_everything_along(scim: Directory) -> None:
    dora = User.objects.get(pk=scim.person()["id"][1:])
    with as_user(dora.pk):
        Conversation.objects.create(owner=dora, title="mine")
    scim.ask("DELETE", path_of(dora), status=204)
    assert not User.objects.exists()
    with as_system():
        assert not Conversation.objects.exists()
    scim.ask("GET", path_of(dora), status=404)
    scim.ask("DELETE", path_of(dora), status=404)
    scim.patch(path_of(dora), OFF, status=404)
    assert scim.person()["id"] != f"u{dora.pk}"


def test_what_the_directory_knows_is_in_the_export(scim: Directory) -> None:
    dora = User.objects.get(pk=scim.person()["id"][1:])
    with as_user(dora.pk):
        told = account_of(dora)["directory"]
    assert told[0]["external_id"] == "ext-dora"
    assert told[0]["given_name"] == "Dora"
    assert TOKEN not in str(told)


# --- lists ----------------------------------------------------------------------------------------

FILTERS = {
    'userName eq "user1@example.org"': "1",
    'USERNAME Eq "USER1@EXAMPLE.ORG"': "1",
    f'{USER}:userName eq "user1@example.org"': "1",
    'externalId eq "ext-user1"': "1",
    'externalId eq "EXT-USER1"': "",
    'emails.value eq "user1@example.org"': "1",
    'emails eq "User1@example.org"': "1",
    'emails[type eq "work" and value eq "user1@example.org"]': "1",
    'emails[type eq "home"]': "",
    "emails[primary eq true]": "0123",
    'userName sw "user" and not (userName ew "1@example.org")': "023",
    'displayName co "ser2" or name.givenName eq "user3"': "23",
    "active eq false": "0",
    "active ne true": "0",
    "externalId pr": "0123",
    "not (name.familyName pr)": "",
    'userName gt "user2@example.org"': "3",
    'userName co "_"': "",
    'userName co "%"': "",
    'userName co "\' OR 1=1 --"': "",
    'userName eq "\\u0000"': "",
    'userName ne "\\ud800"': "0123",
    'id eq "0"': "",
    'id eq "x"': "",
    'id sw "u"': "0123",
    'id sw "g"': "",
    "id pr": "0123",
    'groups.value eq "g7"': "",
    "externalId eq null": "",
}


@pytest.fixture
def four(scim: Directory) -> list[Any]:
    return [scim.person(f"user{n}", active=n != 0) for n in range(4)]


def test_filters_find_what_they_say(scim: Directory, four: list[Any]) -> None:
    for text, numbers in FILTERS.items():
        found = sorted(scim.found("/Users", text))
        assert found == [f"user{n}@example.org" for n in numbers], text
    assert scim.found("/Users", f'id eq "{four[2]["id"]}"') == ["user2@example.org"]
    body = {"filter": "active eq false", "attributes": ["userName"]}
    posted = scim.ask("POST", "/Users/.search", body)
    assert [set(one) for one in posted["Resources"]] == [{"schemas", "id", "userName"}]


@pytest.mark.parametrize(
    "text",
    [
        "userName eq",
        "userName",
        'password eq "x"',
        'is_superuser eq "x"',
        'tier.slug eq "x"',
        'user__password sw "x"',
        "active gt true",
        'meta.created gt "2001-01-01T00:00:00Z"',
        'groups.display eq "x"',
        'groups.value co "1"',
        "not (" * 100 + "id pr" + ")" * 100,
        " and ".join(["id pr"] * 2000),
        "id pr\x00",
    ],
)
@pytest.mark.parametrize("kind", ["Users", "Groups"])
def test_a_bad_filter_is_told(scim: Directory, kind: str, text: str) -> None:
    assert scim.ask("GET", f"/{kind}", filter=text, status=400)["scimType"] == "invalidFilter"


def test_lists_come_in_pages_and_in_order(scim: Directory, four: list[Any]) -> None:
    def names(**query: Any) -> tuple[int, list[str]]:
        listed = scim.ask("GET", "/Users", **query)
        assert listed["itemsPerPage"] == len(listed["Resources"])
        return listed["totalResults"], [one["userName"][4] for one in listed["Resources"]]

    assert names() == (4, ["0", "1", "2", "3"])
    assert names(startIndex=2, count=2) == (4, ["1", "2"])
    assert names(startIndex=-5, count=1) == (4, ["0"])
    assert names(startIndex=9) == (4, [])
    assert names(startIndex=10**30) == (4, [])
    assert names(count=0) == names(count=-1) == (4, [])
    assert names(sortBy="userName", sortOrder="descending", count=2) == (4, ["3", "2"])
    assert names(sortBy="emails", count=2) == (4, ["0", "1"])
    scim.ask("GET", "/Users", sortBy="meta.created", status=400)
    scim.ask("GET", "/Users", count="many", status=400)
    assert names(count="9" * 30)[0] == 4


def test_a_page_has_200_at_most_in_few_queries(
    scim: Directory, django_assert_max_num_queries: Any
) -> None:
    from django.contrib.auth.models import Group

    users = [User(email=f"u{n}@example.org") for n in range(210)]
    User.objects.bulk_create(users)
    group = Group.objects.create(name="all")
    group.user_set.add(*User.objects.all())
    with django_assert_max_num_queries(4):
        listed = scim.ask("GET", "/Users", count=5000)
    assert (listed["totalResults"], len(listed["Resources"])) == (210, 200)
    assert listed["Resources"][7]["groups"][0]["display"] == "all"


def test_only_what_is_asked_for_comes(scim: Directory, four: list[Any]) -> None:
    path = f"/Users/{four[0]['id']}"
    one = scim.ask("GET", path, attributes="userName,emails.value")
    assert one == {
        "schemas": [USER],
        "id": four[0]["id"],
        "userName": "user0@example.org",
        "emails": [{"value": "user0@example.org"}],
    }
    assert "emails" not in scim.ask("GET", path, excludedAttributes="emails,name")
    scim.ask("GET", path, attributes="id", excludedAttributes="name", status=400)
