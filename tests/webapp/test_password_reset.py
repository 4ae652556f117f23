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


def test_the_link_of_the_letter_sets_another_password(alice: User, settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    Client().post("/accounts/password/reset/", {"email": alice.email})
    wait_until(lambda: mail.outbox, what="the letter")
    link = re.search(r"/accounts/password/reset/key/\S+", mail.outbox[0].body)
    assert link
    client = Client()
    form = client.get(link[0], follow=True)
    words = {"password1": "another horse battery", "password2": "another horse battery"}
    assert client.post(form.request["PATH_INFO"], words).status_code == 302
    assert Client().login(email=alice.email, password="another horse battery")
    assert client.get(link[0]).context["token_fail"], "a link works once"
