"""Acts on many accounts at once: below oneself alone, never on the last administrator, and noted."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone

from moderation.models import Suspension
from webapp.models import ScimPerson, User
from webapp.suspensions import open_suspension
from webapp.tenancy import as_system

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

LIST = "/admin/webapp/user/"
ACTS = ("set_tier", "add_to_group", "suspend", "let_in", "sign_out")


@pytest.fixture
def group(db: None) -> Group:
    return Group.objects.create(name="Researchers")


def act(client: Client, name: str, *users: User, **more: object) -> str:
    """As it is done on the list, or on the page between."""
    form = {"action": name, "_selected_action": [str(user.pk) for user in users], "post": "yes"}
    return client.post(LIST, form | more, follow=True).content.decode()


def staff(user: User, *codenames: str) -> Client:
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def notes(user: User) -> list[str]:
    rows = LogEntry.objects.filter(object_id=str(user.pk)).order_by("pk")
    return [row.get_change_message() for row in rows]


def test_tiers_and_groups_are_given_to_many(
    console: Client, alice: User, bob: User, charlie: User, group: Group
) -> None:
    assert "2 accounts in the tier Pro now." in act(console, "set_tier", alice, bob, tier="pro")
    assert "2 accounts added to Researchers." in act(
        console, "add_to_group", alice, bob, group=group.pk
    )
    assert "Nothing has changed" in act(console, "add_to_group", alice, group=group.pk), (
        "it is so already"
    )
    assert set(User.objects.filter(tier="pro")) == {alice, bob}
    assert set(group.user_set.all()) == {alice, bob}
    assert notes(alice) == ["Set the tier Pro.", "Added to the group Researchers."]
    assert notes(charlie) == []


@pytest.mark.parametrize("name", ["set_tier", "add_to_group", "hand_over", "suspend"])
def test_what_is_missing_is_asked_for_and_the_same_accounts_stay_chosen(
    console: Client, alice: User, bob: User, charlie: User, name: str
) -> None:
    form = {"action": name, "_selected_action": [str(alice.pk), str(bob.pk)]}
    page = console.post(LIST, form).content.decode()
    for user in (alice, bob):
        assert f'name="_selected_action" value="{user.pk}"' in page
        assert f"<li>{user.email}</li>" in page
    assert charlie.email not in page
    assert f'name="action" value="{name}"' in page
    assert User.objects.filter(tier="free", is_active=True).count() == 3
    assert not LogEntry.objects.exists()


def test_all_that_a_search_has_found_stay_chosen(
    console: Client, alice: User, bob: User, charlie: User
) -> None:
    form = {"action": "suspend", "_selected_action": [str(alice.pk)], "select_across": "1"}
    page = console.post(f"{LIST}?q=example.org", form).content.decode()
    assert 'name="select_across" value="1"' in page
    assert charlie.email in page


def test_beside_an_action_stands_what_it_takes_and_no_more(console: Client, alice: User) -> None:
    page = console.get(LIST).content.decode()
    for name, field in (("set_tier", "tier"), ("add_to_group", "group"), ("hand_over", "taker")):
        before = page.split(f'name="{field}"')[0]
        assert f"x-show=\"action === '{name}'\"" in before.rsplit('class="action-field"', 1)[1]


def test_who_is_suspended_is_signed_out_and_comes_back(
    console: Client, alice: User, bob: User
) -> None:
    browser = Client()
    browser.force_login(alice)
    browser.get("/settings/sessions")
    ScimPerson.objects.create(user=bob, user_name="bob", is_disabled=True)
    assert "2 accounts suspended." in act(console, "suspend", alice, bob)
    assert not User.objects.filter(pk__in=[alice.pk, bob.pk], is_active=True).exists()
    assert not ScimPerson.objects.filter(is_disabled=True).exists(), "the console has decided"
    assert "1 account let in again." in act(console, "let_in", alice)
    assert browser.get("/settings/").status_code == 302, "the session is over"
    assert notes(alice) == ["Suspended.", "Let in again."]


def test_whom_a_directory_or_strikes_have_suspended_the_console_suspends_as_well(
    console: Client, alice: User, bob: User, charlie: User, admin: User
) -> None:
    User.objects.exclude(pk=admin.pk).update(is_active=False)
    ScimPerson.objects.create(user=alice, user_name="alice", is_disabled=True)
    with as_system():
        Suspension.objects.create(owner=bob, points=3)
    ScimPerson.objects.create(
        user=charlie, user_name="charlie", is_disabled=True, deleted_at=timezone.now()
    )
    assert "2 accounts suspended." in act(console, "suspend", alice, bob, charlie)
    assert "Nothing has changed" in act(console, "suspend", alice, bob, charlie), "it is so already"
    waits = ScimPerson.objects.filter(is_disabled=True)
    assert [row.user for row in waits] == [charlie], "for somebody who takes over"
    assert open_suspension(bob) is None
    assert not User.objects.filter(is_active=True).exclude(pk=admin.pk).exists()
    assert (notes(alice), notes(bob), notes(charlie)) == (["Suspended."], ["Suspended."], [])


def test_signing_out_everywhere(console: Client, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    browser.get("/settings/sessions")
    assert browser.get("/settings/").status_code == 200
    act(console, "sign_out", alice)
    assert browser.get("/settings/").status_code == 302
    assert User.objects.get(pk=alice.pk).is_active


def test_the_last_administrator_stays(console: Client, admin: User, alice: User) -> None:
    page = act(console, "suspend", admin, alice)
    assert "is the last administrator" in page
    assert User.objects.get(pk=admin.pk).is_active
    assert not User.objects.get(pk=alice.pk).is_active


def test_who_looks_after_accounts_acts_below_their_own_alone(
    admin: User, alice: User, bob: User, charlie: User, group: Group
) -> None:
    helper = staff(bob, "view_user", "change_user")
    staff(charlie)
    more = {"tier": "pro", "group": group.pk}
    for name in ("set_tier", "suspend"):
        page = act(helper, name, admin, bob, charlie, alice, **more)
        assert page.count("is not below you") == 3
    assert set(User.objects.filter(tier="pro")) == {alice}
    assert set(User.objects.filter(is_active=False)) == {alice}
    act(helper, "add_to_group", alice, **more)
    assert not group.user_set.exists(), "superusers alone do that"


def test_who_may_only_look_is_refused_everything(
    admin: User, alice: User, bob: User, charlie: User, group: Group
) -> None:
    onlooker, nobody = staff(bob, "view_user"), Client()
    nobody.force_login(charlie)
    for client in (onlooker, nobody):
        for name in ACTS:
            act(client, name, alice, tier="pro", group=group.pk)
    alice.refresh_from_db()
    assert (alice.tier_id, alice.is_active) == ("free", True)
    assert not alice.groups.exists()
    assert notes(alice) == []
