"""What groups of the directory give, and take away again."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from tests.webapp.directory_visits import SECRET, sign_in, synced
from tests.webapp.slapd import GROUPS, PEOPLE, Slapd
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def rights() -> tuple[list[str], str, bool, bool]:
    dora = User.objects.get(email="dora@example.org")
    names = sorted(dora.groups.values_list("name", flat=True))
    return names, str(dora.tier_id), dora.is_staff, dora.is_superuser


def test_groups_are_as_in_the_directory_and_others_are_left_alone(
    directory: Slapd, settings: Any
) -> None:
    settings.DIRECTORY = directory.settings(
        group_base=GROUPS, groups={"staff": "Staff", "r&d": "research"}
    )
    dn = directory.add_person("dora", SECRET)
    other = directory.add_person("other", SECRET)
    directory.add_group("Staff", dn, other)
    directory.add_group("R&D", other)
    directory.add_group("unnamed", dn)
    sign_in(Client())
    assert rights()[0] == ["Staff"]
    User.objects.get(email="dora@example.org").groups.add(Group.objects.create(name="by hand"))
    directory.delete(f"cn=Staff,{GROUPS}")
    directory.delete(f"cn=R&D,{GROUPS}")
    directory.add_group("R&D", dn)
    sign_in(Client())
    assert rights()[0] == ["by hand", "research"]
    directory.delete(f"cn=R&D,{GROUPS}")
    directory.add_group("by chance", dn)
    assert synced(settings) == (1, 0)
    assert rights()[0] == ["by hand"]


def test_a_group_elsewhere_gives_nothing(directory: Slapd, settings: Any) -> None:
    """Whoever may make a group somewhere could call it as the administrators'."""
    settings.DIRECTORY = directory.settings(group_base=GROUPS, administrators="admins")
    dn = directory.add_person("dora", SECRET)
    directory.add_group("admins", dn, base=PEOPLE)
    sign_in(Client())
    assert rights() == ([], "free", False, False)


def test_administrators_and_tiers_come_and_go(directory: Slapd, settings: Any, admin: User) -> None:
    settings.DIRECTORY = directory.settings(
        group_base=GROUPS,
        administrators="admins",
        tiers=(("bosses", "enterprise"), ("staff", "pro"), ("odd", "no such tier")),
    )
    dn = directory.add_person("dora", SECRET)
    seen = []
    for group in ("Staff", "Bosses", "Admins", "odd"):
        directory.add_group(group, dn)
        sign_in(Client())
        seen.append(rights()[1:])
        if group != "Staff":
            directory.delete(f"cn={group},{GROUPS}")
    assert seen == [
        ("pro", False, False),
        ("enterprise", False, False),
        ("pro", True, True),
        ("pro", False, False),
    ]
    directory.delete(f"cn=Staff,{GROUPS}")
    directory.add_group("by chance", dn)
    assert synced(settings) == (1, 0)
    assert rights() == ([], "free", False, False)


def test_an_administrator_by_the_directory_has_the_tier_of_administrators(
    directory: Slapd, settings: Any, admin: User
) -> None:
    settings.DIRECTORY = directory.settings(group_base=GROUPS, administrators="admins")
    dn = directory.add_person("dora", SECRET)
    group = directory.add_group("admins", dn)
    sign_in(Client())
    assert rights() == ([], "admin", True, True)
    directory.delete(group)
    synced(settings, may_take_all=True)
    assert rights() == ([], "free", False, False)


def test_without_a_mapping_rights_are_the_consoles(directory: Slapd, dora: User) -> None:
    User.objects.filter(pk=dora.pk).update(tier="pro", is_staff=True, is_superuser=True)
    sign_in(Client())
    assert rights() == ([], "pro", True, True)
