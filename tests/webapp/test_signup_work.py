"""Sign-up and robots: the sum, once for each form, and the field that nobody sees."""

import re
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import signing
from django.test import Client

from tests.conftest import PASSWORD
from webapp import signup_work
from webapp.invitations import invite
from webapp.models import User
from webapp.signup_work import num_zero_bits

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis", "admin")]

SIGNUP = "/accounts/signup/"
BITS = 8
_numbers = count(1)


@pytest.fixture(autouse=True)
def _bits(settings: Any) -> None:
    settings.SIGNUP_WORK_BITS = BITS


def challenge_of(client: Client) -> str:
    page = client.get(SIGNUP).content.decode()
    (found,) = re.findall(r'name="challenge" value="([^"]+)"', page)
    return found


def worked(challenge: str, bits: int = BITS) -> str:
    return next(str(n) for n in count() if num_zero_bits(challenge, str(n)) >= bits)


def sign_up(client: Client, **more: str) -> bool:
    email = f"dora{next(_numbers)}@example.org"
    client.post(SIGNUP, {"name": "Dora", "email": email, "password1": PASSWORD, **more})
    return User.objects.filter(email=email).exists()


def test_who_has_done_the_sum_comes_in_once_by_it() -> None:
    client = Client()
    challenge = challenge_of(client)
    sent = {"challenge": challenge, "nonce": worked(challenge)}
    assert sign_up(client, **sent)
    assert not sign_up(Client(), **sent)
    assert challenge_of(Client()) != challenge


def test_who_has_not_stays_out_and_is_told_why() -> None:
    client = Client()
    challenge = challenge_of(client)
    lazy = next(str(n) for n in count() if num_zero_bits(challenge, str(n)) < BITS)
    forged = signing.dumps("x", salt="another")
    for sent in (
        {},
        {"challenge": challenge},
        {"challenge": challenge, "nonce": lazy},
        {"challenge": "mine", "nonce": worked("mine")},
        {"challenge": forged, "nonce": worked(forged)},
        {"challenge": challenge, "nonce": "0" * 10_000},
    ):
        assert not sign_up(client, **sent), sent
    assert "<noscript>" in client.get(SIGNUP).content.decode()
    page = client.post(SIGNUP, {"name": "x", "email": "x@example.org", "password1": PASSWORD})
    assert "needs JavaScript" in page.content.decode()
    assert 'name="challenge"' in page.content.decode()


def test_a_challenge_of_long_ago_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    challenge = challenge_of(Client())
    nonce = worked(challenge)
    monkeypatch.setattr(signup_work, "LIFETIME_S", -1)
    assert not sign_up(Client(), challenge=challenge, nonce=nonce)
    monkeypatch.undo()
    assert sign_up(Client(), challenge=challenge, nonce=nonce)


def test_what_people_do_not_see_they_do_not_fill_in(settings: Any) -> None:
    settings.SIGNUP_WORK_BITS = 0
    assert not sign_up(Client(), homepage="https://example.com")
    assert sign_up(Client(), homepage="")


def test_none_is_asked_of_who_is_invited() -> None:
    client = Client()
    _, link = invite()
    assert client.get(urlsplit(link).path).status_code == 302
    assert "challenge" not in client.get(SIGNUP).content.decode()
    assert sign_up(client)


def test_zero_bits_ask_for_nothing(settings: Any) -> None:
    settings.SIGNUP_WORK_BITS = 0
    assert "challenge" not in Client().get(SIGNUP).content.decode()
    assert sign_up(Client())
