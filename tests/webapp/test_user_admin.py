"""Accounts in the console: suspended for good, and changed by no old form; the last administrator."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.conftest import PASSWORD
from tests.webapp.test_sign_ins import FIREFOX, browser_of_user, is_signed_in
from webapp.models import ScimPerson, User
from webapp.scim.people import change_person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def page_of(user: User) -> str:
    return f"/admin/webapp/user/{user.pk}/change/"


def form_on(page: Any) -> dict[str, Any]:
    """What a browser would send, of the page as it is."""
    form = page.context["adminform"].form
    sent: dict[str, Any] = {}
    for field in form:
        value = field.value()
        if value not in (None, False, [], ""):
            sent[field.html_name] = "on" if value is True else value
    html = page.content.decode()
    shown = re.findall(r'type="hidden" name="(initial-[^"]+)" value="([^"]*)"', html)
    return sent | dict(shown)


def form_of(user: User, **changes: Any) -> dict[str, Any]:
    """What a program would send."""
    form = {"email": user.email, "name": user.name, "tier": user.tier_id}
    for name in ("is_active", "is_staff", "is_superuser"):
        form |= {name: "on"} if getattr(user, name) else {}
    form |= changes
    return {name: value for name, value in form.items() if value is not None}


def test_who_is_suspended_is_signed_out_for_good(
    console: Client, alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    browser = browser_of_user(alice, FIREFOX, "192.0.2.1")
    with django_capture_on_commit_callbacks(execute=True):
        console.post(page_of(alice), form_of(alice, name="Alice A."))
    assert is_signed_in(browser)
    with django_capture_on_commit_callbacks(execute=True):
        console.post(page_of(alice), form_of(alice, is_active=None))
    assert not is_signed_in(browser)
    console.post(page_of(alice), form_of(alice, is_active="on"))
    assert User.objects.get(pk=alice.pk).is_active
    assert not is_signed_in(browser)


# --- the last administrator, and forms that lay open ----------------------------------------------


@pytest.mark.parametrize("right", ["is_superuser", "is_active"])
def test_the_last_administrator_stays_one(console: Client, admin: User, right: str) -> None:
    other = User.objects.create_superuser("other@example.org", PASSWORD)
    assert console.post(page_of(other), form_of(other, **{right: None})).status_code == 302
    refused = console.post(page_of(admin), form_of(admin, **{right: None}))
    assert "last active administrator" in refused.content.decode()
    fresh = User.objects.get(pk=admin.pk)
    assert fresh.is_superuser
    assert fresh.is_active
    assert console.post(page_of(admin), form_of(admin, name="Ada")).status_code == 302


@pytest.mark.parametrize("by", ["console", "scim"])
def test_the_link_to_the_directory_is_locked_before_its_account(
    console: Client, alice: User, by: str
) -> None:
    """As the directory's visits do, or each would wait for the other."""
    left = {"left_at": "2026-01-01T00:00:00+00:00"}
    SocialAccount.objects.create(user=alice, provider="ldap", uid="a", extra_data=left)
    with CaptureQueriesContext(connection) as captured:
        if by == "console":
            assert console.post(page_of(alice), form_of(alice, is_active=None)).status_code == 302
        else:
            change_person(alice.pk, lambda facts: facts.model_copy(update={"active": False}))
    assert not User.objects.get(pk=alice.pk).is_active
    assert not SocialAccount.objects.get().extra_data, "it was not by the directory"
    locks = [query["sql"] for query in captured if "FOR UPDATE" in query["sql"]]
    tables = [re.findall(r'FOR UPDATE OF "(\w+)"', lock)[0] for lock in locks]
    assert tables.index("socialaccount_socialaccount") < tables.index("webapp_user")


def by_scim(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)
    ScimPerson.objects.create(user=user, user_name=user.email, is_disabled=True)


MEANWHILE: dict[str, Callable[[User], Any]] = {
    "disabled by a directory": by_scim,
    "put into a group": lambda user: user.groups.add(Group.objects.create(name="new")),
    "of another tier": lambda user: User.objects.filter(pk=user.pk).update(tier="pro"),
    "made an administrator": lambda user: User.objects.filter(pk=user.pk).update(is_staff=True),
}


@pytest.mark.parametrize("change", MEANWHILE)
def test_an_old_form_undoes_nothing_of_what_has_happened_since(
    console: Client, alice: User, change: str
) -> None:
    form = form_on(console.get(page_of(alice)))
    MEANWHILE[change](alice)
    before = User.objects.get(pk=alice.pk)
    refused = console.post(page_of(alice), form | {"name": "New"})
    assert "has changed meanwhile" in refused.content.decode()
    now = User.objects.get(pk=alice.pk)
    assert now.name == "Alice"
    for name in ("is_active", "tier_id", "is_staff"):
        assert getattr(now, name) == getattr(before, name)
    assert list(now.groups.all()) == list(before.groups.all())
    assert ScimPerson.objects.filter(is_disabled=True).exists() is (MEANWHILE[change] is by_scim)
    fresh = form_on(console.get(page_of(alice)))
    assert console.post(page_of(alice), fresh | {"name": "New"}).status_code == 302


def test_a_form_that_was_refused_is_sent_again(console: Client, alice: User) -> None:
    group = Group.objects.create(name="readers")
    form = form_on(console.get(page_of(alice))) | {"groups": [str(group.pk)]}
    refused = console.post(page_of(alice), form | {"email": "none"})
    assert refused.status_code == 200
    again = form_on(refused) | {"email": alice.email}
    assert console.post(page_of(alice), again).status_code == 302
    assert list(alice.groups.all()) == [group]
