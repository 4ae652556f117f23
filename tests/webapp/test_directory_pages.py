"""What the directory keeps is not changed here; and connecting it with an account that there is."""

from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.test import Client

from tests.conftest import PASSWORD
from tests.sites import wait_until
from tests.webapp.directory_visits import CONNECT, SECRET, is_in, sign_in
from tests.webapp.slapd import Slapd
from webapp.accounts import AccountAdapter
from webapp.directory_links import is_of_directory
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.mark.urls("tests.webapp.urls_with_mail")
@pytest.mark.parametrize(
    "path", ["/accounts/password/change/", "/accounts/password/set/", "/accounts/email/"]
)
def test_what_the_directory_keeps_is_not_changed_here(
    dora: User, client: Client, path: str
) -> None:
    form = {"password1": PASSWORD, "password2": PASSWORD, "email": "new@example.org"}
    for page in (client.get(path), client.post(path, form)):
        assert page.status_code == 403
        assert "directory of your organisation" in page.content.decode()
    assert "directory of your organisation" in client.get("/settings/security/").content.decode()
    assert not User.objects.get(pk=dora.pk).has_usable_password()


@pytest.mark.urls("tests.webapp.urls_with_mail")
@pytest.mark.django_db(transaction=True)  # the page asks on another connection
def test_no_button_leads_to_what_the_directory_keeps(
    dora: User, alice: User, client: Client, settings: Any
) -> None:
    settings.SMTP_HOST = "mail.example.org"
    assert "/accounts/email/" not in client.get("/settings/").content.decode()
    client.force_login(alice)
    assert "/accounts/email/" in client.get("/settings/").content.decode()


@pytest.mark.urls("tests.webapp.urls_with_mail")
def test_a_forgotten_password_is_not_replaced_by_a_letter(
    dora: User, alice: User, settings: Any
) -> None:
    settings.SMTP_HOST = "mail.example.org"
    for email in (dora.email, alice.email):
        page = Client().post("/accounts/password/reset/", {"email": email})
        assert page.headers["Location"] == "/accounts/password/reset/done/"
    wait_until(lambda: len(mail.outbox) == 2, what="two letters")
    letters = {letter.to[0]: letter.body for letter in mail.outbox}
    assert "kept in the directory" in letters[dora.email]
    assert "/password/reset/key/" not in letters[dora.email]
    assert "/password/reset/key/" in letters[alice.email]


def test_a_local_password_does_not_outlive_the_next_sign_in(dora: User) -> None:
    dora.set_password(PASSWORD)
    dora.save()
    assert sign_in(Client()).status_code == 302
    assert not User.objects.get(pk=dora.pk).has_usable_password()


def test_a_letter_of_before_changes_no_password(dora: User) -> None:
    with pytest.raises(PermissionDenied):
        AccountAdapter().set_password(dora, PASSWORD)
    assert not User.objects.get(pk=dora.pk).has_usable_password()


# --- connecting -----------------------------------------------------------------------------------


def connected_after(client: Client, login: str = "dora", password: str = SECRET) -> Any:
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return client.post(CONNECT, {"login": login, "password": password})


def test_somebody_with_an_account_connects_it(
    directory: Slapd, client: Client, alice: User
) -> None:
    directory.add_person("dora", SECRET, mail=alice.email)
    elsewhere = Client()
    for one in (client, elsewhere):
        one.force_login(alice)
    assert client.get(CONNECT).headers["Location"].startswith("/accounts/reauthenticate/")
    assert connected_after(client).headers["Location"] == "/settings/security/"
    assert is_of_directory(alice)
    assert [is_in(client), is_in(elsewhere)] == [True, False]
    assert sign_in(Client(), alice.email, PASSWORD).status_code == 200
    again = Client()
    assert sign_in(again).status_code == 302
    assert again.get("/settings/security/").context["user"] == alice


def test_connecting_takes_both_passwords(directory: Slapd, client: Client, alice: User) -> None:
    directory.add_person("dora", SECRET)
    client.force_login(alice)
    form = {"login": "dora", "password": SECRET}
    assert client.post(CONNECT, form).headers["Location"] == CONNECT
    assert SECRET not in str(dict(client.session))
    assert "is wrong" in connected_after(client, password="wrong").content.decode()
    assert not SocialAccount.objects.exists()
    assert User.objects.get(pk=alice.pk).has_usable_password()


def test_an_entry_of_somebody_elses_is_not_connected(
    dora: User, alice: User, directory: Slapd
) -> None:
    browser = Client()
    browser.force_login(alice)
    assert "connected already" in connected_after(browser).content.decode()
    assert SocialAccount.objects.get().user == dora
    directory.add_person("eve", SECRET)
    other = Client()
    sign_in(other)
    page = other.post(CONNECT, {"login": "eve", "password": SECRET})
    assert "connected already" in page.content.decode()


@pytest.mark.urls("tests.webapp.urls_with_provider")
def test_nobody_parts_from_the_directory_by_themselves(dora: User, client: Client) -> None:
    row = SocialAccount.objects.get()
    SocialAccount.objects.create(user=dora, provider="work", uid="d-1")
    page = client.post("/accounts/connections/", {"account": row.pk})
    assert "Only your administrator" in page.content.decode()
    assert SocialAccount.objects.filter(pk=row.pk).exists()


def test_the_console_shows_who_is_connected(dora: User, admin: User) -> None:
    browser = Client()
    browser.force_login(admin)
    assert "ldap" in browser.get("/admin/socialaccount/socialaccount/").content.decode()
    pk = SocialAccount.objects.get().pk
    assert browser.get(f"/admin/socialaccount/socialaccount/{pk}/change/").status_code == 200


def test_without_a_directory_there_is_no_page(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get(CONNECT).status_code == 404
    assert CONNECT not in client.get("/settings/security/").content.decode()
