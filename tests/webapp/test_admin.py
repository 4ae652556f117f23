"""The admin console: who gets in, and what deleting a user takes along."""

import pytest
from django.test import Client

from chat.models import Conversation
from webapp.api_keys import create_api_key
from webapp.models import ApiKey, User
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.fixture
def console(client: Client, admin: User) -> Client:
    client.force_login(admin)
    return client


def test_only_staff_get_in_and_only_by_the_one_door(
    client: Client, alice: User, admin: User
) -> None:
    assert client.get("/admin/").headers["Location"] == "/accounts/login/?next=/admin/"
    assert client.get("/admin/login/").headers["Location"].startswith("/accounts/login/")
    client.force_login(alice)
    assert client.get("/admin/", follow=True).status_code == 403
    client.force_login(admin)
    assert client.get("/admin/").status_code == 200


def test_deleting_a_user_takes_everything_along(console: Client, alice: User, bob: User) -> None:
    create_api_key(alice)
    for user in (alice, bob):
        with as_user(user.pk):
            Conversation.objects.create(owner=user, title=f"of {user}")
    page = console.get(f"/admin/webapp/user/{alice.pk}/delete/").content.decode()
    assert "conversation" in page.lower()
    response = console.post(f"/admin/webapp/user/{alice.pk}/delete/", {"post": "yes"})
    assert response.status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
    with as_system():
        assert [one.owner_id for one in Conversation.objects.all()] == [bob.pk]


def test_deleting_many_users_works_too(console: Client, alice: User, bob: User) -> None:
    with as_user(alice.pk):
        Conversation.objects.create(owner=alice)
    form = {
        "action": "delete_selected",
        "_selected_action": [str(alice.pk), str(bob.pk)],
        "post": "yes",
    }
    assert console.post("/admin/webapp/user/", form).status_code == 302
    with as_system():
        assert not Conversation.objects.exists()


def test_an_administrator_does_not_see_what_people_write(console: Client, alice: User) -> None:
    with as_user(alice.pk):
        Conversation.objects.create(owner=alice, title="private")
    console.get("/admin/")
    assert not Conversation.objects.exists()  # in the scope that the request has left behind


def test_a_key_can_be_revoked_and_its_secret_is_nowhere(console: Client, alice: User) -> None:
    key, secret = create_api_key(alice, name="notebook")
    path = f"/admin/webapp/apikey/{key.pk}/change/"
    page = console.get(path).content.decode()
    assert key.prefix in page
    assert secret not in page
    assert key.secret_hash not in page
    form = {"name": "notebook", "revoked_at_0": "2026-01-01", "revoked_at_1": "00:00:00"}
    assert console.post(path, form).status_code == 302
    assert ApiKey.objects.get(pk=key.pk).revoked_at is not None
    assert console.get("/admin/webapp/apikey/add/").status_code == 403
