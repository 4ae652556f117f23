"""What a directory does with groups, and what it may not."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection

from moderation.models import ModerationPolicy
from tests.webapp.scim_client import GROUP, PATCH, Directory
from tests.webapp.test_scim_people import confirm
from webapp.models import GroupGrant, ScimChange, ScimGroup, User

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]


@pytest.fixture
def ids(scim: Directory) -> list[str]:
    return [scim.person(f"user{n}")["id"] for n in range(3)]


def members(group_id: str) -> list[str]:
    users = Group.objects.get(pk=group_id[1:]).user_set.order_by("pk")
    return [f"u{pk}" for pk in users.values_list("pk", flat=True)]


def test_a_group_is_made_filled_and_found(scim: Directory, ids: list[str]) -> None:
    told = scim.group("Writers", *ids[:2], externalId="g-1")
    path = f"/Groups/{told['id']}"
    assert told["schemas"] == [GROUP]
    assert told["meta"]["location"] == f"http://testserver/scim/v2{path}"
    assert [one["value"] for one in told["members"]] == ids[:2]
    assert members(told["id"]) == ids[:2]
    assert scim.ask("GET", path) == told
    user = scim.ask("GET", f"/Users/{ids[0]}")
    assert user["groups"] == [
        {
            "value": told["id"],
            "$ref": told["meta"]["location"],
            "display": "Writers",
        }
    ]
    for text, is_found in {
        'displayName eq "writers"': True,
        'externalId eq "g-1"': True,
        f'id eq "{told["id"]}" and members eq "{ids[0]}"': True,
        f'members.value eq "{ids[2]}"': False,
        f'members[value eq "{ids[1]}"]': True,
        "members pr": True,
    }.items():
        assert scim.found("/Groups", text) == ["Writers"] * is_found, text
    assert scim.found("/Users", f'groups.value eq "{told["id"]}" and id eq "{ids[1]}"')
    listed = scim.ask("GET", "/Groups", excludedAttributes="members")
    assert "members" not in listed["Resources"][0]


def test_members_come_and_go_as_okta_and_entra_write(scim: Directory, ids: list[str]) -> None:
    group = scim.group("Writers")["id"]
    path = f"/Groups/{group}"

    def patch(*operations: dict[str, Any]) -> list[str]:
        scim.patch(path, *operations, status=204)
        return members(group)

    add = {"op": "Add", "path": "members", "value": [{"value": ids[0]}, {"value": ids[1]}]}
    assert patch(add) == ids[:2]
    assert patch(add, add) == ids[:2], "twice is once"
    assert patch({"op": "remove", "path": f'members[value eq "{ids[0]}"]'}) == [ids[1]]
    assert patch({"op": "remove", "path": f'members[value eq "{ids[0]}"]'}) == [ids[1]]
    assert patch({"op": "Remove", "path": "members", "value": [{"value": ids[1]}]}) == []
    assert patch({"op": "replace", "path": "members", "value": [{"value": ids[2]}]}) == [ids[2]]
    one = {"op": "add", "value": {"members": [{"value": ids[0], "display": "x"}]}}
    assert patch(one) == [ids[0], ids[2]]
    assert patch({"op": "remove", "path": "members"}) == []
    rename = {"op": "replace", "value": {"id": group, "displayName": "Authors"}}
    scim.patch(path, rename, status=204)
    body = {"schemas": [GROUP], "displayName": "Poets", "members": [{"value": ids[1]}]}
    assert scim.ask("PUT", path, body)["displayName"] == "Poets"
    assert members(group) == [ids[1]]
    scim.ask("DELETE", path, status=204)
    scim.ask("GET", path, status=404)
    assert User.objects.count() == 3
    actions = set(ScimChange.objects.filter(kind="group").values_list("action", flat=True))
    assert actions == {"made", "changed", "deleted"}


@pytest.mark.parametrize(
    "member",
    [
        {"value": "u999999"},
        {"value": "x"},
        {"value": None},
        {"value": "9" * 30},
        {"value": "\x00"},
        {},
        {"value": "g1", "type": "Group"},
        {"value": "1"},
    ],
)
def test_who_is_nobody_is_no_member(scim: Directory, ids: list[str], member: Any) -> None:
    group = scim.group("Writers", ids[0])["id"]
    add = {"op": "add", "path": "members", "value": [{"value": ids[1]}, member]}
    told = scim.patch(f"/Groups/{group}", add, status=400)
    assert told["scimType"] == "invalidValue"
    assert members(group) == [ids[0]]


def test_an_unconfirmed_address_gets_nothing_of_a_groups(
    scim: Directory, charlie: User, alice: User
) -> None:
    group = scim.group("Writers")["id"]
    add = {"op": "add", "path": "members", "value": [{"value": f"u{charlie.pk}"}]}
    scim.patch(f"/Groups/{group}", add, status=400)
    confirm(alice)
    scim.patch(
        f"/Groups/{group}",
        {"op": "add", "path": "members", "value": [{"value": f"u{alice.pk}"}]},
        status=204,
    )
    assert members(group) == [f"u{alice.pk}"]


def test_names_are_taken_once(scim: Directory) -> None:
    scim.group("Writers")
    other = scim.group("Readers")["id"]
    Group.objects.create(name="Console")
    for name in ("Writers", "WRITERS", "console"):
        body = {"schemas": [GROUP], "displayName": name}
        assert scim.ask("POST", "/Groups", body, status=409)["scimType"] == "uniqueness"
        rename = {"op": "replace", "path": "displayName", "value": name}
        told = scim.patch(f"/Groups/{other}", rename, status=409)
        assert told["scimType"] == "uniqueness"
    assert ScimGroup.objects.count() == 2


@pytest.mark.parametrize("name", ["", " ", None, 5, "x" * 151, "a\x00", "\ud800"])
def test_a_bad_name_makes_no_group(scim: Directory, name: Any) -> None:
    scim.ask("POST", "/Groups", {"schemas": [GROUP], "displayName": name}, status=400)
    assert not Group.objects.exists()


def test_a_group_of_the_console_is_filled_and_neither_renamed_nor_deleted(
    scim: Directory, ids: list[str]
) -> None:
    group = Group.objects.create(name="Console")
    GroupGrant.objects.create(group=group, model_names=["large-*"])
    path = f"/Groups/g{group.pk}"
    assert scim.found("/Groups", 'displayName eq "Console"') == ["Console"]
    add = {"op": "add", "path": "members", "value": [{"value": ids[0]}]}
    scim.patch(path, add, status=204)
    assert User.objects.get(pk=ids[0][1:]).granted_models == ["large-*"]
    rename = {"op": "replace", "path": "displayName", "value": "Mine"}
    assert scim.patch(path, rename, status=400)["scimType"] == "mutability"
    scim.ask("DELETE", path, status=403)
    assert Group.objects.get().name == "Console"


def test_a_policy_for_a_group_follows_its_name(scim: Directory) -> None:
    policy = ModerationPolicy.objects.create(name="Of writers", groups=["Writers", "Others"])
    group = scim.group("Writers")["id"]
    rename = {"op": "replace", "path": "displayName", "value": "Poets"}
    scim.patch(f"/Groups/{group}", rename, status=204)
    policy.refresh_from_db()
    assert policy.groups == ["Poets", "Others"]


def test_a_group_with_permissions_makes_no_administrators(scim: Directory, ids: list[str]) -> None:
    group = scim.group("Helpers")["id"]
    row = Group.objects.get()
    row.permissions.add(Permission.objects.all()[0])
    add = {"op": "add", "path": "members", "value": [{"value": ids[0]}]}
    scim.patch(f"/Groups/{group}", add, status=403)
    body = {"schemas": [GROUP], "displayName": "Helpers", "members": [{"value": ids[0]}]}
    scim.ask("PUT", f"/Groups/{group}", body, status=403)
    scim.ask("DELETE", f"/Groups/{group}", status=403)
    assert members(group) == []


def test_additions_at_the_same_time_are_all_there(scim: Directory, ids: list[str]) -> None:
    group = scim.group("Writers")["id"]
    barrier = threading.Barrier(3)

    def add(one: str) -> int:
        barrier.wait()
        operation = {"op": "add", "path": "members", "value": [{"value": one}]}
        body = {"schemas": [PATCH], "Operations": [operation]}
        try:
            return int(scim.send("PATCH", f"/Groups/{group}", body).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(add, ids)) == [204] * 3
    assert members(group) == ids


def test_a_list_of_groups_costs_few_queries(
    scim: Directory, django_assert_max_num_queries: Any, ids: list[str]
) -> None:
    for number in range(30):
        Group.objects.create(name=f"g{number}").user_set.add(*User.objects.all())
    with django_assert_max_num_queries(4):
        listed = scim.ask("GET", "/Groups", count=200)
    assert [len(one["members"]) for one in listed["Resources"]] == [3] * 30
