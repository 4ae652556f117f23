"""Another e-mail address: it counts once its link has been opened, and the old one is told."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core import mail
from django.test import Client

from tests.conftest import PASSWORD
from tests.sites import wait_until
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis", "with_mail")]

PAGE = "/accounts/email/"
NEW = "alice@new.example"


@pytest.fixture
def with_mail(settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"


@pytest.fixture
def proved(client: Client, alice: User) -> Client:
    EmailAddress.objects.create(user=alice, email=alice.email, primary=True, verified=True)
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return client


def ask(client: Client, email: str = NEW) -> Any:
    return client.post(PAGE, {"email": email, "action_add": "yes"})


def letter_to(email: str) -> str:
    def found() -> str:
        return next((str(one.body) for one in mail.outbox if one.to == [email]), "")

    return str(wait_until(found, what=f"a letter to {email}"))


def link_in(text: str) -> str:
    found = re.search(r"http://testserver(/accounts/confirm-email/\S+)", text)
    assert found, text
    return found[1]


def email_of(user: User) -> str:
    return User.objects.get(pk=user.pk).email


def test_the_new_address_counts_once_its_link_is_opened(proved: Client, alice: User) -> None:
    assert ask(proved).status_code == 302
    assert NEW in proved.get(PAGE).content.decode()
    assert email_of(alice) == "alice@example.org"
    link = link_in(letter_to(NEW))
    assert proved.get(link).status_code == 200
    assert email_of(alice) == "alice@example.org", "a look is no confirmation"
    proved.post(link)
    assert email_of(alice) == NEW
    assert list(EmailAddress.objects.values_list("email", "verified")) == [(NEW, True)]
    assert NEW in letter_to("alice@example.org"), "the old address is told"
    visitor = Client()
    visitor.post("/accounts/login/", {"login": "alice@example.org", "password": PASSWORD})
    assert visitor.get(PAGE).status_code == 302
    visitor.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    assert visitor.get(PAGE).status_code == 200


def test_a_change_can_be_cancelled(proved: Client, alice: User) -> None:
    ask(proved)
    link = link_in(letter_to(NEW))
    proved.post(PAGE, {"email": NEW, "action_remove": "yes"})
    proved.post(link)
    assert email_of(alice) == "alice@example.org"


def test_a_stolen_session_changes_nothing(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert ask(client).headers["Location"].startswith("/accounts/reauthenticate/")
    assert not EmailAddress.objects.filter(email=NEW).exists()
    assert Client().get(PAGE).headers["Location"].startswith("/accounts/login/")


def test_somebody_elses_address_is_neither_taken_nor_told(
    proved: Client, alice: User, bob: User
) -> None:
    known, unknown = ask(proved, bob.email), ask(proved, "nobody@example.org")
    assert known.status_code == unknown.status_code == 302
    letter_to("nobody@example.org")
    for letter in mail.outbox:
        found = re.search(r"/accounts/confirm-email/\S+", str(letter.body))
        if found and letter.to == [bob.email]:
            proved.post(found[0])
    assert email_of(alice) == "alice@example.org"
    assert email_of(bob) == "bob@example.org"


def test_a_second_step_is_no_hindrance(proved: Client, alice: User) -> None:
    TOTP.activate(alice, generate_totp_secret())
    assert ask(proved).status_code == 302
    letter_to(NEW)


def test_letters_are_not_sent_without_end(proved: Client) -> None:
    statuses = [ask(proved, f"a{n}@new.example").status_code for n in range(11)]
    assert statuses[-1] == 429
    assert 429 not in statuses[:10]
