"""Addresses in the console: what becomes of the one before."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from tests.sites import wait_until
from tests.webapp.test_user_admin import form_of, page_of
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.fixture
def console(client: Client, admin: User) -> Client:
    client.force_login(admin)
    return client


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
