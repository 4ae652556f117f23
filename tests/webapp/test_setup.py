"""The one-time link that makes the administrator."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from webapp.models import SetupToken, User
from webapp.setup import SetupClosed, create_administrator, issue_setup_token

pytestmark = pytest.mark.usefixtures("clean_redis")

FORM = {"name": "Ada", "email": "Ada@Example.org", "password": "correct horse battery"}


@pytest.mark.django_db
def test_the_link_makes_one_administrator_who_is_signed_in_and_then_it_is_dead(
    client: Client,
) -> None:
    path = f"/setup/{issue_setup_token()}"
    assert client.get(path).status_code == 200
    assert client.post(path, FORM).headers["Location"] == "/"
    ada = User.objects.get()
    assert (ada.email, ada.tier_id, ada.is_superuser) == ("ada@example.org", "admin", True)
    assert client.get("/accounts/password/change/").status_code == 200
    assert Client().get(path).status_code == 404
    assert Client().post(path, FORM | {"email": "eve@example.org"}).status_code == 404
    assert User.objects.count() == 1
    assert issue_setup_token() is None


@pytest.mark.django_db
def test_a_guessed_or_an_older_token_opens_nothing(client: Client) -> None:
    older = issue_setup_token()
    newer = issue_setup_token()
    for token in (older, "guess", "\x00"):
        assert client.post(f"/setup/{token}", FORM).status_code == 404
    assert not User.objects.exists()
    assert client.get(f"/setup/{newer}").status_code == 200


@pytest.mark.django_db
def test_the_token_is_not_in_the_database() -> None:
    token = issue_setup_token()
    assert token
    assert token not in SetupToken.objects.get().secret_hash


@pytest.mark.django_db
def test_a_link_dies_when_an_administrator_is_made_on_the_command_line(client: Client) -> None:
    token = issue_setup_token()
    User.objects.create_superuser("root@example.org", "correct horse battery")
    assert client.get(f"/setup/{token}").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("password", ["short", "12345678901", "password123", "ada@example.org"])
def test_a_weak_password_is_refused_and_the_link_lives_on(client: Client, password: str) -> None:
    path = f"/setup/{issue_setup_token()}"
    response = client.post(path, FORM | {"password": password})
    assert response.status_code == 200
    assert "errorlist" in response.content.decode()
    assert client.post(path, FORM).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_of_thirty_at_the_same_time_one_becomes_administrator() -> None:
    token = issue_setup_token()
    assert token

    def attempt(n: int) -> bool:
        try:
            create_administrator(token, name="A", email=f"a{n}@example.org", password="x")
        except SetupClosed:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(30) as pool:
        outcomes = list(pool.map(attempt, range(30)))
    assert sum(outcomes) == 1
    assert User.objects.filter(is_superuser=True).count() == 1
