"""People change what they are called, unless a directory says it."""

from typing import Any

import pytest
from django.test import Client

from webapp.models import ScimPerson, User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clean_redis")]
PAGE = "/settings/name"


@pytest.fixture
def tab(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def name_of(user: User) -> str:
    return User.objects.get(pk=user.pk).name


def test_a_name_is_changed_on_its_page(tab: Client, alice: User) -> None:
    assert PAGE in tab.get("/settings/").content.decode()
    assert f'value="{alice.name}"' in tab.get(PAGE).content.decode()
    saved = tab.post(PAGE, {"name": "  Alice of Oz "}, follow=True)
    assert "Saved." in saved.content.decode()
    assert name_of(alice) == "Alice of Oz"


@pytest.mark.parametrize("wrong", ["", "   ", "x" * 121, "a\0b"])
def test_sign_up_would_not_take_it_either(tab: Client, alice: User, wrong: str) -> None:
    before = alice.name
    assert tab.post(PAGE, {"name": wrong}).status_code == 400
    assert name_of(alice) == before


def test_a_name_of_the_directory_stays(tab: Client, alice: User, settings: Any) -> None:
    settings.SCIM_TOKEN = "x" * 32
    ScimPerson.objects.create(user=alice, user_name="alice")
    before = alice.name
    assert PAGE not in tab.get("/settings/").content.decode()
    refused = tab.post(PAGE, {"name": "Somebody"})
    assert refused.status_code == 403
    assert "directory of your organisation" in refused.content.decode()
    assert name_of(alice) == before


def test_no_stranger_has_one(client: Client) -> None:
    assert client.get(PAGE).headers["Location"].startswith("/accounts/login/")
