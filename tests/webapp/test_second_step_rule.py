"""Where a second step is asked of people, who has none comes no further than to where it is added."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import get_resolver, resolve

from tests.conftest import PASSWORD
from tests.webapp.test_two_step import APP, SECURITY, add_app
from webapp.api_keys import create_api_key
from webapp.models import SecondStepRule, User
from webapp.second_step_rule import OPEN_WHILE_OWED, forget_rule, who_owe_one
from webapp.socket_users import _users_in_db

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis", "rule_of_the_test")]

RULE = "/admin/webapp/secondsteprule/"
ADD, CHANGE, DELETE = f"{RULE}add/", f"{RULE}1/change/", f"{RULE}1/delete/"
NOTICE = "Your organisation asks for a second step."


@pytest.fixture
def rule_of_the_test() -> Iterator[None]:
    """What is known of the last one's is forgotten, as all of its rows are."""
    forget_rule()
    yield
    forget_rule()


def require_of(whom: str) -> None:
    SecondStepRule.objects.update_or_create(pk=1, defaults={"whom": whom})
    forget_rule()


def socket_user(client: Client) -> Any:
    (found,) = _users_in_db([client.session.session_key])
    return found


@pytest.fixture
def signed_in(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def test_who_owes_one_comes_to_the_page_where_it_is_added_and_then_everywhere(
    signed_in: Client, alice: User
) -> None:
    assert signed_in.get("/").status_code == 200
    assert socket_user(signed_in) == alice
    require_of("everybody")
    for page in ("/", "/settings/keys", "/settings/sessions", "/settings/export"):
        assert signed_in.get(page).headers["Location"] == SECURITY, page
    assert signed_in.post("/settings/keys/new", {"name": "mine"}).headers["Location"] == SECURITY
    refused = signed_in.get("/api/conversations")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "second_step_missing"
    assert isinstance(socket_user(signed_in), AnonymousUser)
    assert NOTICE in signed_in.get(SECURITY).content.decode()
    add_app(signed_in)
    assert NOTICE not in signed_in.get(SECURITY).content.decode()
    assert signed_in.get("/").status_code == 200
    assert signed_in.get("/api/conversations").status_code == 200
    assert socket_user(signed_in) == alice


def test_recovery_codes_alone_are_none(alice: User) -> None:
    require_of("everybody")
    Authenticator.objects.create(user=alice, type=Authenticator.Type.RECOVERY_CODES, data={})
    assert who_owe_one([alice]) == {alice.pk}
    Authenticator.objects.create(user=alice, type=Authenticator.Type.WEBAUTHN, data={})
    assert who_owe_one([alice]) == set()


def test_of_staff_alone(alice: User, admin: User, bob: User) -> None:
    require_of("staff")
    assert who_owe_one([alice, admin, bob]) == {admin.pk}
    require_of("nobody")
    assert who_owe_one([alice, admin, bob]) == set()


def test_another_ones_people_are_asked_there(alice: User) -> None:
    require_of("everybody")
    alice.set_unusable_password()
    alice.save()
    assert who_owe_one([alice]) == set()


@pytest.mark.django_db(transaction=True)
def test_a_key_is_a_proof_of_its_own_and_a_token_lives_by_a_session(
    client: Client, alice: User
) -> None:
    secret = create_api_key(alice, name="mine")[1]
    form = {"email": alice.email, "password": PASSWORD}
    token = client.post("/api/auth/token", form, content_type="application/json").json()
    require_of("everybody")
    by_key = Client().get("/v1/models", headers={"Authorization": f"Bearer {secret}"})
    assert by_key.status_code == 200
    bearer = {"Authorization": f"Bearer {token['access_token']}"}
    by_token = Client().get("/v1/models", headers=bearer)
    assert by_token.status_code == 403
    assert by_token.json()["error"]["code"] == "second_step_missing"


def test_the_console_says_it_and_its_administrator_is_asked_first(console: Client) -> None:
    assert console.get(RULE).headers["Location"] == ADD
    assert "VITRINE_SECOND_STEP (nobody) holds until" in console.get(ADD).content.decode()
    assert console.post(ADD, {"whom": "staff"}).status_code == 302
    assert console.get(CHANGE).headers["Location"] == SECURITY
    add_app(console)
    assert console.get(RULE).headers["Location"] == CHANGE
    assert console.post(DELETE, {"post": "yes"}).status_code == 302
    assert not SecondStepRule.objects.exists()


def test_the_environment_says_it_while_the_console_does_not(settings: Any, alice: User) -> None:
    settings.SECOND_STEP = "everybody"
    assert who_owe_one([alice]) == {alice.pk}
    require_of("nobody")
    assert who_owe_one([alice]) == set()


def test_who_may_not_change_it_does_not(signed_in: Client) -> None:
    """Charlie's try; here it is Alice who has no right."""
    assert signed_in.post(ADD, {"whom": "nobody"}).status_code == 302
    assert not SecondStepRule.objects.exists()


def test_all_that_is_open_meanwhile_are_addresses_of_this_site() -> None:
    names = {resolve(SECURITY).url_name, resolve(APP).url_name}
    assert names <= OPEN_WHILE_OWED
    known = {key for key in get_resolver().reverse_dict if isinstance(key, str)}
    assert known >= OPEN_WHILE_OWED


def test_sessions_are_read_together(alice: User, bob: User) -> None:
    """Of two who ask at the same time each is told about themselves."""
    require_of("everybody")
    Authenticator.objects.create(user=bob, type=Authenticator.Type.TOTP, data={})
    keys = []
    for user in (alice, bob):
        client = Client()
        client.force_login(user)
        keys.append(str(client.session.session_key))
    found = _users_in_db(keys)
    assert isinstance(found[0], AnonymousUser)
    assert found[1] == bob
