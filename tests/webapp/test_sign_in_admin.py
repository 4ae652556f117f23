"""Sign-ins in the console: seen by administrators, ended by them, and never told by their keys."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from chat.budgets import today
from chat.models import Usage
from tests.webapp.test_sign_ins import EDGE, FIREFOX, IPHONE, browser_of_user, is_signed_in
from webapp.models import SignIn, User
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

LIST = "/admin/webapp/signin/"


def ids(**which: Any) -> list[int]:
    with as_system():
        return list(SignIn.objects.filter(**which).values_list("pk", flat=True))


def end(console: Client, chosen: list[int]) -> Any:
    form = {"action": "end", "_selected_action": [str(one) for one in chosen]}
    return console.post(LIST, form)


def test_who_is_signed_in_where_is_listed_searched_and_filtered(
    console: Client, alice: User, bob: User
) -> None:
    browser_of_user(alice, IPHONE, "2001:db8::7")
    browser_of_user(bob, EDGE, "192.0.2.99")
    page = console.get(LIST).content.decode()
    assert "Safari on iPhone" in page
    assert "Edge on Windows" in page
    assert "2001:db8::7" in page
    for query in ("q=bob@example", "q=192.0.2.9", "q=Edg/", "user__tier__slug__exact=free&q=bob"):
        found = console.get(f"{LIST}?{query}").content.decode()
        assert "192.0.2.99" in found, query
        assert "2001:db8::7" not in found, query


def test_no_page_tells_what_names_a_session(console: Client, alice: User) -> None:
    browser_of_user(alice, FIREFOX, "192.0.2.1")
    (chosen,) = ids(user=alice)
    with as_system():
        key = SignIn.objects.get(pk=chosen).session_key
    for path in (LIST, f"{LIST}{chosen}/change/", f"{LIST}?q={key}"):
        response = console.get(path)
        assert response.status_code == 200
        shown = response.content.decode().replace(f"q={key}", "").replace(f'value="{key}"', "")
        assert key not in shown
    assert "192.0.2.1" not in console.get(f"{LIST}?q={key}").content.decode()


def test_those_that_are_chosen_end_at_once_and_it_is_noted(
    console: Client, admin: User, alice: User, bob: User
) -> None:
    phone = browser_of_user(alice, IPHONE, "192.0.2.2")
    laptop = browser_of_user(alice, EDGE, "192.0.2.3")
    other = browser_of_user(bob, FIREFOX, "192.0.2.4")
    response = end(console, ids(address="192.0.2.2") + ids(address="192.0.2.4"))
    assert response.status_code == 302
    assert [is_signed_in(one) for one in (phone, laptop, other)] == [False, True, False]
    notes = LogEntry.objects.filter(user=admin).order_by("change_message")
    assert [note.get_change_message() for note in notes] == [
        "Signed out alice@example.org (Safari on iPhone, 192.0.2.2).",
        "Signed out bob@example.org (Firefox on Linux, 192.0.2.4).",
    ]


def test_those_that_have_ended_are_not_shown(console: Client, alice: User) -> None:
    browser_of_user(alice, IPHONE, "192.0.2.2").post("/accounts/logout/")
    assert "192.0.2.2" not in console.get(LIST).content.decode()


def test_nobody_adds_changes_or_deletes_them(console: Client, alice: User) -> None:
    browser_of_user(alice, IPHONE, "192.0.2.2")
    (chosen,) = ids(user=alice)
    assert console.get(LIST + "add/").status_code == 403
    assert console.post(f"{LIST}{chosen}/change/", {"address": "::1"}).status_code == 403
    assert console.post(f"{LIST}{chosen}/delete/", {"post": "yes"}).status_code == 403
    assert ids(user=alice, address="192.0.2.2") == [chosen]


def test_who_may_only_look_ends_none(client: Client, alice: User, bob: User) -> None:
    victim = browser_of_user(alice, IPHONE, "192.0.2.2")
    bob.is_staff = True
    bob.save(update_fields=["is_staff"])
    bob.user_permissions.add(Permission.objects.get(codename="view_signin"))
    client.force_login(bob)
    assert "192.0.2.2" in client.get(LIST).content.decode()
    end(client, ids(user=alice))
    assert is_signed_in(victim)


def test_a_user_who_has_been_here_can_still_be_deleted(console: Client, alice: User) -> None:
    browser_of_user(alice, IPHONE, "192.0.2.2")
    with as_user(alice.pk):
        Usage.objects.create(owner=alice, day=today(), model="small")
    path = f"/admin/webapp/user/{alice.pk}/delete/"
    assert console.post(path, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
    assert ids(user_id=alice.pk) == []
