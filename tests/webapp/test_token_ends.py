"""What ends tokens, and where they are seen."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.conftest import PASSWORD
from tests.webapp.token_client import (
    COOKIE,
    REFRESH,
    REVOKE,
    SESSIONS,
    WHOAMI,
    ask,
    bearer,
    error_of,
    opens,
    token_of,
    with_cookie,
)
from webapp.models import SignIn, User
from webapp.sign_ins import lately_noted
from webapp.tenancy import as_system, as_user
from webapp.token_families import MAX_FAMILIES

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.webapp.urls"),
    pytest.mark.usefixtures("clean_redis"),
]


def test_revoking_ends_the_family_and_may_be_repeated(client: Client, alice: User) -> None:
    access = token_of(client, alice)
    other = token_of(Client(), alice)
    refresh = client.cookies[COOKIE].value
    response = client.post(REVOKE)
    assert (response.status_code, response.content) == (204, b"")
    assert response.cookies[COOKIE]["max-age"] == 0
    assert response.cookies[COOKIE]["path"] == "/api/auth/"
    assert not opens(access)
    assert opens(other)
    for again in (client, with_cookie(refresh), with_cookie("nonsense")):
        assert again.post(REVOKE).status_code == 204
    assert error_of(with_cookie(refresh).post(REFRESH)) == (401, "invalid_refresh_token")


def test_revoking_goes_by_the_access_token_as_well(client: Client, alice: User) -> None:
    access = token_of(client, alice)
    other = token_of(Client(), alice)
    assert Client().post(REVOKE, headers=bearer(access)).status_code == 204
    assert [opens(access), opens(other)] == [False, True]
    assert error_of(client.post(REFRESH)) == (401, "invalid_refresh_token")


def test_a_stranger_ends_nothing(client: Client, alice: User, charlie: User) -> None:
    access = token_of(client, alice)
    stranger = Client()
    token = token_of(stranger, charlie)
    stranger.post(REVOKE)
    assert [opens(token), opens(access)] == [False, True]
    with as_user(charlie.pk):
        assert not SignIn.objects.exclude(user=charlie).exists()


def suspend(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    browser = Client()
    browser.force_login(user)
    form = {"oldpassword": PASSWORD, "password1": "a new horse 42", "password2": "a new horse 42"}
    assert browser.post("/accounts/password/change/", form).status_code == 302


def end_in_settings(user: User) -> None:
    browser = Client()
    browser.force_login(user)
    with as_user(user.pk):
        row = SignIn.objects.exclude(token_family=None).get()
    assert browser.post(SESSIONS, {"end": row.pk}).status_code == 302


def end_all_others(user: User) -> None:
    browser = Client()
    browser.force_login(user)
    assert browser.post(SESSIONS, {"others": "yes"}).status_code == 302


def delete_row(user: User) -> None:
    with as_system():
        User.objects.get(pk=user.pk).delete()


def delete_account(user: User) -> None:
    browser = Client()
    browser.force_login(user)
    browser.post("/accounts/reauthenticate/", {"password": PASSWORD})
    response = browser.post("/settings/delete-account", {"email": user.email})
    assert response.headers["Location"] == "/accounts/login/"


@pytest.mark.parametrize(
    "event",
    [suspend, change_password, end_in_settings, end_all_others, delete_row, delete_account],
)
def test_what_ends_a_session_ends_tokens_at_once(client: Client, alice: User, event: Any) -> None:
    access = token_of(client, alice)
    assert opens(access)
    event(alice)
    assert not opens(access)
    assert not opens(access, "/v1/chat/whoami")
    assert error_of(client.post(REFRESH)) == (401, "invalid_refresh_token")


@pytest.mark.django_db(transaction=True)
def test_a_demoted_administrator_is_none_at_the_next_call(client: Client) -> None:
    ada = User.objects.create_superuser("ada@example.org", PASSWORD)
    headers = bearer(token_of(client, ada))
    usage = "/api/admin/usage?by=owner"
    assert Client().get(usage, headers=headers).status_code == 200
    User.objects.filter(pk=ada.pk).update(is_staff=False, is_superuser=False)
    assert Client().get(usage, headers=headers).status_code in (403, 404)


def test_the_settings_show_a_program_with_tokens(alice: User) -> None:
    program = Client(HTTP_USER_AGENT="curl/8.5.0", REMOTE_ADDR="192.0.2.44")
    token = token_of(program, alice)
    browser = Client(HTTP_USER_AGENT="Firefox/140.0 Linux")
    browser.force_login(alice)
    page = browser.get(SESSIONS).content.decode()
    assert "192.0.2.44" in page
    assert page.count("API client") == 1
    before = timezone.now() - timedelta(minutes=5)
    lately_noted._noted_s.clear()
    with as_user(alice.pk):
        SignIn.objects.update(last_seen_at=before)
    Client().get(WHOAMI, headers=bearer(token), REMOTE_ADDR="192.0.2.45")
    with as_user(alice.pk):
        row = SignIn.objects.exclude(token_family=None).get()
    assert (row.address, row.last_seen_at > before) == ("192.0.2.45", True)


def test_of_many_families_the_one_that_rested_longest_makes_room(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    first, second = token_of(Client(), alice), token_of(Client(), alice)
    clients = [Client(REMOTE_ADDR=f"198.51.100.{n}") for n in range(MAX_FAMILIES - 1)]
    for one in clients:
        assert ask(one, alice).status_code == 200
    assert [opens(first), opens(second)] == [False, True]
    assert browser.get("/page").status_code == 200, "browsers stay"
