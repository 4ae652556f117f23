"""The sign-up policy of the console is in place of VITRINE_SIGNUP, at once."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from tests.conftest import PASSWORD
from webapp.invitations import invite
from webapp.models import SignupRule, User
from webapp.signup_policy import SignupPolicy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

SIGNUP = "/accounts/signup/"
ADD = "/admin/webapp/signuprule/add/"
CHANGE = "/admin/webapp/signuprule/1/change/"
DELETE = "/admin/webapp/signuprule/1/delete/"


def sign_up(email: str) -> bool:
    """Whether somebody new gets an account by the form."""
    form = {"name": "Dora", "email": email, "password1": PASSWORD}
    Client().post(SIGNUP, form)
    return User.objects.filter(email=email).exists()


def test_what_is_saved_holds_at_once_and_what_is_deleted_no_more(console: Client) -> None:
    assert sign_up("a@example.org")
    assert console.post(ADD, {"mode": "closed", "domains": ""}).status_code == 302
    assert not sign_up("b@example.org")
    assert "Sign-up is closed" in Client().get(SIGNUP).content.decode()
    console.post(CHANGE, {"mode": "invitation", "domains": ""})
    assert not sign_up("b@example.org")
    assert "by invitation" in Client().get(SIGNUP).content.decode()
    console.post(CHANGE, {"mode": "open", "domains": ""})
    assert sign_up("b@example.org")
    console.post(CHANGE, {"mode": "closed", "domains": ""})
    assert console.post(DELETE, {"post": "yes"}).status_code == 302
    assert sign_up("c@example.org")


def test_it_may_open_what_the_environment_closes(console: Client, settings: Any) -> None:
    settings.SIGNUP = SignupPolicy("closed")
    assert not sign_up("a@example.org")
    assert "(nobody) holds until" in console.get(ADD).content.decode()
    console.post(ADD, {"mode": "open", "domains": ""})
    assert sign_up("a@example.org")


def test_an_invitation_that_was_opened_before_it_was_closed_lets_nobody_in(
    console: Client,
) -> None:
    guest = Client()
    path = "/accounts/" + invite()[1].split("/accounts/")[1]
    assert guest.get(path).status_code == 302
    console.post(ADD, {"mode": "closed", "domains": ""})
    guest.post(SIGNUP, {"name": "D", "email": "d@example.org", "password1": PASSWORD})
    assert not User.objects.filter(email="d@example.org").exists()
    assert Client().get(path).status_code == 404


def test_domains_let_their_own_addresses_in(console: Client, settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"
    form = {"mode": "domain", "domains": " Example.COM, b.example "}
    assert console.post(ADD, form).status_code == 302
    assert SignupRule.objects.get().domains == ["example.com", "b.example"]
    assert not sign_up("a@example.org")
    assert sign_up("a@example.com")


@pytest.mark.parametrize("domains", ["", "@example.org", "example", "example.org;b.example"])
def test_what_is_no_domain_is_refused(console: Client, settings: Any, domains: str) -> None:
    settings.SMTP_HOST = "mail.example.org"
    page = console.post(ADD, {"mode": "domain", "domains": domains})
    assert "Domains are written as in" in page.content.decode()
    assert not SignupRule.objects.exists()


def test_domains_need_somebody_who_confirms_addresses(console: Client) -> None:
    page = console.post(ADD, {"mode": "domain", "domains": "example.org"})
    assert "need SMTP_HOST or a sign-in provider" in page.content.decode()
    assert not SignupRule.objects.exists()


def test_there_is_one_policy_and_who_changed_it_is_noted(console: Client, admin: User) -> None:
    assert console.get("/admin/webapp/signuprule/").headers["Location"] == ADD
    console.post(ADD, {"mode": "closed", "domains": "example.org"})
    assert SignupRule.objects.get().domains == []  # they belong to the mode "domain"
    assert console.get("/admin/webapp/signuprule/").headers["Location"] == CHANGE
    assert console.post(ADD, {"mode": "open", "domains": ""}).status_code == 403
    console.post(CHANGE, {"mode": "open", "domains": ""})
    notes = LogEntry.objects.order_by("action_time")
    assert [(note.user, note.object_repr) for note in notes] == [
        (admin, "nobody"),
        (admin, "everybody"),
    ]


def test_only_administrators_set_it(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.post(ADD, {"mode": "closed"}, follow=True).status_code == 403
    assert not SignupRule.objects.exists()
