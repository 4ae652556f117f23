"""Deleting accounts in the console: as their owners would, whatever there is of them."""

from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from chat import library
from chat.ids import uuid7
from chat.models import Conversation, Message, Role
from tests.conftest import PASSWORD
from webapp.models import SignIn, User
from webapp.own_data import end_account
from webapp.tenancy import as_system, as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]

LIST = "/admin/webapp/user/"
LONG = 1500  # more than Python nests calls


def page_of(user: User) -> str:
    return f"{LIST}{user.pk}/delete/"


def delete_selected(console: Client, *users: User, **more: str) -> str:
    form = {"action": "delete_selected", "_selected_action": [str(user.pk) for user in users]}
    return console.post(LIST, form | more, follow=True).content.decode()


def long_branch(owner: User) -> Conversation:
    ids = [uuid7() for _ in range(LONG)]
    above: list[UUID | None] = [None, *ids]
    with as_user(owner.pk):
        chat = Conversation.objects.create(owner=owner, title="private")
        Message.objects.bulk_create(
            Message(pk=pk, conversation=chat, parent_id=parent, role=Role.USER, text="secret")
            for pk, parent in zip(ids, above, strict=False)
        )
    return chat


@pytest.mark.parametrize("is_binned", [False, True])
def test_a_chat_longer_than_python_nests_calls_keeps_nobody(
    console: Client, alice: User, is_binned: bool
) -> None:
    chat = long_branch(alice)
    if is_binned:
        with as_user(alice.pk):
            library.change(alice, chat.pk, {"deleted": True}, None)
    page = console.get(page_of(alice)).content.decode()
    assert f"{LONG}" in page.replace(",", "")
    assert "private" not in page
    assert console.post(page_of(alice), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
    with as_system():
        assert not Message.objects.exists()


def test_many_go_at_once_with_such_chats(console: Client, alice: User, bob: User) -> None:
    long_branch(alice)
    assert f"{LONG}" in delete_selected(console, alice, bob).replace(",", "")
    assert User.objects.filter(pk__in=[alice.pk, bob.pk]).count() == 2
    delete_selected(console, alice, bob, post="yes")
    assert not User.objects.filter(pk__in=[alice.pk, bob.pk]).exists()


def test_every_door_is_closed_before_anything_goes(
    console: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Client()
    browser.force_login(alice)
    browser.get("/settings/sessions")

    def die(user: User) -> None:
        raise OSError("the disk is away")

    monkeypatch.setattr("webapp.own_data.let_go", die)
    console.raise_request_exception = False
    assert console.post(page_of(alice), {"post": "yes"}).status_code == 500
    alice.refresh_from_db()
    assert not alice.is_active
    assert browser.get("/settings/").status_code == 302
    with as_system():
        assert not SignIn.objects.filter(user=alice).exists()
    monkeypatch.undo()
    assert console.post(page_of(alice), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()


def test_who_changed_something_in_the_console_can_go_and_the_log_stays(
    console: Client, admin: User, alice: User, bob: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True, is_staff=True)
    other = Client()
    other.force_login(alice)
    assert other.post(page_of(bob), {"post": "yes"}).status_code == 302
    assert console.post(page_of(alice), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
    act = LogEntry.objects.get(object_id=str(bob.pk))
    assert act.user.name == f"Former administrator {alice.pk}"


def test_the_last_administrator_stays(console: Client, admin: User, alice: User) -> None:
    assert "last administrator" in console.get(page_of(admin)).content.decode()
    console.post(page_of(admin), {"post": "yes"})
    delete_selected(console, admin, alice, post="yes")
    assert User.objects.filter(pk=admin.pk, is_active=True).exists()
    assert User.objects.filter(pk=alice.pk).exists(), "of those together, none"
    other = User.objects.create_superuser("other@example.org", PASSWORD)
    console.post(page_of(other), {"post": "yes"})
    assert not User.objects.filter(pk=other.pk).exists()


def test_who_looks_after_accounts_deletes_those_below_alone(
    client: Client, admin: User, alice: User, bob: User
) -> None:
    bob.is_staff = True
    bob.save()
    client.force_login(bob)
    assert client.post(page_of(alice), {"post": "yes"}).status_code == 403
    bob.user_permissions.set(
        Permission.objects.filter(codename__in=["view_user", "change_user", "delete_user"])
    )
    assert client.post(page_of(admin), {"post": "yes"}).status_code == 403
    delete_selected(client, admin, alice, post="yes")
    assert User.objects.filter(pk__in=[admin.pk, alice.pk]).count() == 2
    assert client.post(page_of(alice), {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()


def test_charlie_deletes_nobody(client: Client, alice: User, charlie: User) -> None:
    client.force_login(charlie)
    client.post(page_of(alice), {"post": "yes"})
    delete_selected(client, alice, post="yes")
    assert User.objects.filter(pk=alice.pk).exists()


def test_an_account_may_be_ended_twice(alice: User) -> None:
    long_branch(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    end_account(alice)
    assert not User.objects.filter(pk=alice.pk).exists()
