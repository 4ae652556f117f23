"""Addresses in the console: who may confirm one, and what becomes of the one before."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core import mail
from django.test import Client

from tests.sites import wait_until
from tests.webapp.test_user_admin import form_of, page_of
from webapp.models import User
from webapp.security_events import events_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

ADDRESSES = "/admin/account/emailaddress/"


def confirm(client: Client, *rows: EmailAddress) -> Any:
    form = {"action": "make_verified", "_selected_action": [str(row.pk) for row in rows]}
    return client.post(ADDRESSES, form, follow=True)


@pytest.fixture
def rows(admin: User, alice: User) -> tuple[EmailAddress, EmailAddress]:
    """Of alice and of the administrator, both unconfirmed."""
    return (
        EmailAddress.objects.create(user=alice, email=alice.email, primary=True),
        EmailAddress.objects.create(user=admin, email="evil@example.org"),
    )


def staff(user: User, *codes: str) -> Client:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client = Client()
    client.force_login(user)
    return client


def test_who_may_only_look_confirms_no_address(
    bob: User, rows: tuple[EmailAddress, EmailAddress]
) -> None:
    client = staff(bob, "view_emailaddress")
    assert client.get(ADDRESSES).status_code == 200
    confirm(client, *rows)
    assert not EmailAddress.objects.filter(verified=True).exists()


def test_who_may_change_addresses_confirms_those_of_people_below_and_it_is_noted(
    bob: User, alice: User, rows: tuple[EmailAddress, EmailAddress]
) -> None:
    client = staff(bob, "view_emailaddress", "change_emailaddress")
    told = confirm(client, *rows).content.decode()
    assert [row.user for row in EmailAddress.objects.filter(verified=True)] == [alice]
    assert "evil@example.org is an administrator" in told
    (note,) = LogEntry.objects.filter(user=bob)
    assert note.object_id == str(rows[0].pk)
    assert "alice@example.org" in note.get_change_message()
    (event,) = events_of(alice.pk)
    assert (event["kind"], event["how"]) == ("address", "confirmed in the console")


def test_an_address_that_another_account_has_confirmed_is_told(
    console: Client, bob: User, rows: tuple[EmailAddress, EmailAddress]
) -> None:
    EmailAddress.objects.create(user=bob, email=rows[0].email, verified=True)
    assert "Another account has confirmed" in confirm(console, rows[0]).content.decode()
    assert not EmailAddress.objects.get(pk=rows[0].pk).verified


def test_an_old_address_gets_no_letter_any_more(
    console: Client, alice: User, bob: User, settings: Any
) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    EmailAddress.objects.create(user=bob, email="bob@second.example", verified=True)
    refused = console.post(page_of(alice), form_of(alice, email="Bob@second.example"))
    assert "has confirmed this address" in refused.content.decode()
    assert console.post(page_of(alice), form_of(alice, email="new@example.org")).status_code == 302
    for email in (alice.email, "new@example.org"):
        Client().post("/accounts/password/reset/", {"email": email})

    def letters() -> dict[str, str]:
        return {letter.to[0]: str(letter.body) for letter in mail.outbox}

    wait_until(lambda: len(letters()) == 2, what="two letters")
    assert "/password/reset/key/" in letters()["new@example.org"]
    assert "/password/reset/key/" not in letters()[alice.email], "that of an unknown address"
    rows = EmailAddress.objects.filter(user=alice)
    assert list(rows.values_list("email", "verified", "primary")) == [
        ("new@example.org", True, True)
    ]
