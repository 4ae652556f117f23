"""Letters that confirm an address: what pages say of them, the same to everybody."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from tests.conftest import PASSWORD
from tests.sites import wait_until
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis", "admin")]
SENT, SIGNUP, LOGIN = "/accounts/confirm-email/", "/accounts/signup/", "/accounts/login/"
RESET = "/accounts/password/reset/"


@pytest.fixture(autouse=True)
def with_mail(settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"
    settings.SIGNUP_WORK_BITS = 0


def sign_up(client: Client, email: str) -> str:
    form = {"name": "Dora", "email": email, "password1": PASSWORD}
    assert client.post(SIGNUP, form).headers["Location"] == SENT
    return client.get(SENT).content.decode()


def link_to(email: str, number: int = 1) -> str:
    def letters() -> list[str]:
        bodies = [str(one.body) for one in mail.outbox if one.to == [email]]
        return bodies if len(bodies) >= number else []

    found = re.search(rf"{SENT}\S+/", wait_until(letters, what=f"letter {number}")[number - 1])
    assert found
    return found[0]


def test_the_page_names_the_address_the_same_for_known_and_unknown_ones(alice: User) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    pages = []
    for email in ("dora@example.org", alice.email):
        html = sign_up(Client(), email)
        assert f"<bdi>{email}</bdi>" in html
        pages.append(re.sub(r'(value|nonce)="[^"]*"', "", html.replace(email, "")))
    assert pages[0] == pages[1]


def test_whoever_has_lost_the_letter_signs_in_and_gets_another(client: Client) -> None:
    sign_up(client, "dora@example.org")
    link_to("dora@example.org")
    visitor = Client()
    form = {"login": "dora@example.org", "password": PASSWORD}
    assert visitor.post(LOGIN, form).headers["Location"] == SENT
    assert "dora@example.org" in visitor.get(SENT).content.decode()
    assert link_to("dora@example.org", number=2)


def test_an_old_link_tells_how_to_get_another() -> None:
    html = Client().get(f"{SENT}wrong/").content.decode()
    assert "sign in: then we send you a new one" in html


def test_a_confirmed_address_is_told_before_the_sign_in(client: Client) -> None:
    sign_up(client, "dora@example.org")
    reader = Client()
    link = link_to("dora@example.org")
    assert reader.get(link).status_code == 200
    page = reader.post(link, follow=True)
    assert page.request["PATH_INFO"] == LOGIN
    assert "Your address is confirmed. Sign in." in page.content.decode()


def test_the_page_of_a_forgotten_password_names_what_was_typed() -> None:
    for email in ("nobody@example.org", "admin@example.org"):
        client = Client()
        html = client.post(RESET, {"email": email}, follow=True).content.decode()
        assert f"If <bdi>{email}</bdi> has an account here" in html


def test_one_word_for_addresses_and_one_case_for_passwords(alice: User) -> None:
    client = Client()
    for path in (LOGIN, SIGNUP, RESET):
        assert ">E-mail address</label>" in client.get(path).content.decode()
    client.force_login(alice)
    html = client.get("/accounts/password/change/").content.decode()
    assert re.findall(r"<label[^>]*>([^<]+)<", html) == [
        "Current password",
        "New password",
        "New password (again)",
    ]
