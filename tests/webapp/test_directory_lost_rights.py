"""No mistake in the directory takes the last administrator, or everybody's rights at once."""

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.management import call_command
from django.test import Client

from tests.conftest import PASSWORD
from tests.webapp.directory_visits import CONNECT, SECRET, is_in, sign_in, synced
from tests.webapp.slapd import GROUPS, PEOPLE, Slapd
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.fixture
def mapped(directory: Slapd, settings: Any) -> Slapd:
    settings.DIRECTORY = directory.settings(
        group_base=GROUPS,
        administrators="admins",
        tiers=(("paying", "pro"),),
        groups={"staff": "Staff"},
    )
    return directory


@pytest.fixture
def boss(mapped: Slapd) -> str:
    """The DN of dora, who is the only administrator."""
    dn = mapped.add_person("dora", SECRET)
    mapped.add_group("admins", dn)
    mapped.add_group("others", dn)
    sign_in(Client())
    return dn


def rights_of(name: str) -> tuple[str, bool, bool, bool, list[str]]:
    user = User.objects.get(email=f"{name}@example.org")
    groups = [group.name for group in user.groups.all()]
    return str(user.tier_id), user.is_staff, user.is_superuser, user.is_active, groups


ADMINISTRATOR = ("admin", True, True, True, [])


def test_the_last_administrator_keeps_the_rights(
    mapped: Slapd, boss: str, settings: Any, caplog: Any
) -> None:
    mapped.delete(f"cn=admins,{GROUPS}")
    sign_in(Client())
    synced(settings)
    assert rights_of("dora") == ADMINISTRATOR
    assert "would take the last administrator" in caplog.text
    User.objects.create_superuser("other@example.org", PASSWORD)
    synced(settings)
    assert rights_of("dora") == ("free", False, False, True, [])


def test_the_last_administrator_keeps_the_account(
    mapped: Slapd, boss: str, settings: Any, caplog: Any
) -> None:
    User.objects.create_superuser("away@example.org", PASSWORD, is_active=False)
    mapped.delete(boss)
    assert synced(settings, may_take_all=True) == (0, 0)
    assert rights_of("dora") == ADMINISTRATOR
    assert "has left the directory: kept" in caplog.text
    User.objects.update(is_active=True)
    assert synced(settings) == (0, 1)


def test_of_two_administrators_who_leave_together_one_stays(
    mapped: Slapd, boss: str, settings: Any
) -> None:
    dn = mapped.add_person("eve", SECRET)
    mapped.delete(f"cn=admins,{GROUPS}")
    mapped.add_group("admins", boss, dn)
    sign_in(Client(), "eve")
    assert rights_of("eve") == ADMINISTRATOR
    for one in (dn, boss):
        mapped.delete(one)
    assert synced(settings, may_take_all=True) == (0, 1)
    assert User.objects.has_administrator()


def test_the_only_administrator_is_not_connected_where_that_would_take_the_rights(
    mapped: Slapd, admin: User, client: Client
) -> None:
    dn = mapped.add_person("root", SECRET)
    client.force_login(admin)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    form = {"login": "root", "password": SECRET}
    assert "the only administrator" in client.post(CONNECT, form).content.decode()
    assert not SocialAccount.objects.exists()
    assert User.objects.get(pk=admin.pk).check_password(PASSWORD)
    assert is_in(client)
    mapped.add_group("admins", dn)
    assert client.post(CONNECT, form).status_code == 302
    assert User.objects.get(pk=admin.pk).is_superuser


@pytest.mark.parametrize("lost", ["groups", "base"])
def test_groups_that_nobody_sees_any_more_take_no_rights(
    mapped: Slapd, boss: str, admin: User, settings: Any, lost: str, caplog: Any
) -> None:
    payer = mapped.add_person("eve", SECRET)
    mapped.add_person("frank", SECRET)
    mapped.add_group("paying", payer)
    mapped.add_group("staff", payer)
    for name in ("eve", "frank"):
        sign_in(Client(), name)
    before = [rights_of(name) for name in ("dora", "eve", "frank")]
    assert before[1] == ("pro", False, False, True, ["Staff"])
    mapped.change(payer, cn="New")
    if lost == "base":
        settings.DIRECTORY = replace(settings.DIRECTORY, group_base=PEOPLE)
    else:
        for group in ("admins", "others", "paying", "staff"):
            mapped.delete(f"cn={group},{GROUPS}")
    assert synced(settings) == (3, 0)
    assert [rights_of(name) for name in ("dora", "eve", "frank")] == before
    assert User.objects.get(email="eve@example.org").name == "New"
    assert "shows no group of anybody" in caplog.text
    call_command("ldap_sync", "--all", stdout=StringIO())
    after = [rights_of(name)[:3] for name in ("dora", "eve", "frank")]
    assert after == [("free", False, False)] * 3


def test_who_alone_is_taken_out_of_the_groups_loses_the_rights(
    mapped: Slapd, boss: str, settings: Any
) -> None:
    dn = mapped.add_person("eve", SECRET)
    mapped.add_group("paying", dn)
    sign_in(Client(), "eve")
    mapped.delete(f"cn=paying,{GROUPS}")
    synced(settings)
    assert rights_of("eve")[0] == "free"
    assert rights_of("dora") == ADMINISTRATOR
