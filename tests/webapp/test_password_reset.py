"""A password that was forgotten, from the form by the letter to the next sign-in."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from tests.sites import wait_until
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


RESET = "/accounts/password/reset/"


@pytest.fixture(autouse=True)
def with_mail(settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"


def test_the_link_of_the_letter_sets_another_password(alice: User) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    Client().post(RESET, {"email": alice.email})
    wait_until(lambda: mail.outbox, what="the letter")
    link = re.search(r"/accounts/password/reset/key/\S+", mail.outbox[0].body)
    assert link
    client = Client()
    form = client.get(link[0], follow=True)
    words = {"password1": "another horse battery", "password2": "another horse battery"}
    assert client.post(form.request["PATH_INFO"], words).status_code == 302
    assert Client().login(email=alice.email, password="another horse battery")
    assert client.get(link[0]).context["token_fail"], "a link works once"


def test_a_whole_office_behind_one_address_may_ask(alice: User) -> None:
    asked = [Client().post(RESET, {"email": f"p{n}@example.org"}) for n in range(30)]
    assert {page.status_code for page in asked} == {302}


def test_no_mailbox_is_flooded_and_the_page_says_nothing_of_it(alice: User, bob: User) -> None:
    for user in (alice, bob):
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    pages = [
        Client(REMOTE_ADDR=f"192.0.2.{n}").post(RESET, {"email": f" {alice.email.title()} "})
        for n in range(9)
    ]
    assert {(page.status_code, page.headers["Location"]) for page in pages} == {
        (302, "/accounts/password/reset/done/")
    }
    Client().post(RESET, {"email": bob.email})
    wait_until(lambda: mail.outbox and mail.outbox[-1].to == [bob.email], what="another's letter")
    assert [letter.to for letter in mail.outbox].count([alice.email]) == 5
