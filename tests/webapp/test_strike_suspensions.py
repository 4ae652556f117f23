"""Accounts that strikes close: who, when, and who opens them again."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.test import Client
from django.utils import timezone

from chat import cooling
from moderation.models import Decision, Strike, Suspension
from moderation.strikes import Limits
from tests.conftest import PASSWORD
from tests.webapp.scim_client import Directory
from tests.webapp.test_sign_ins import FIREFOX, browser_of_user, is_signed_in
from webapp.celery import app
from webapp.models import SignIn, User
from webapp.strike_suspensions import let_in_again, reconsider
from webapp.tasks import reconsider_account
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

LOGIN, APPEAL = "/accounts/login/", "/accounts/suspended/"
LIST = "/admin/moderation/suspension/"


def strike(user: User, points: float) -> Decision:
    reasons = [{"category": "hate", "probability": 0.9, "threshold": 0.5, "action": "block"}]
    with as_system():
        row = Decision.objects.create(
            owner=user, stage="input", source="chat", action="block", reasons=reasons, text="bad"
        )
        Strike.objects.create(owner=user, decision=row, points=points)
        reconsider(user.pk)
    return row


def is_active(user: User) -> bool:
    return User.objects.get(pk=user.pk).is_active


def sign_in(user: User, password: str = PASSWORD) -> tuple[Client, str]:
    visitor = Client()
    page = visitor.post(LOGIN, {"login": user.email, "password": password}, follow=True)
    return visitor, page.content.decode()


@pytest.fixture
def console(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def decide(console: Client, user: User, verdict: str) -> None:
    with as_system():
        pk = Suspension.objects.get(owner=user).pk
    form = {"verdict": verdict, "notes": "I looked."}
    response = console.post(f"{LIST}{pk}/change/", form)
    assert response.status_code == 302, response.content.decode()


def test_too_many_strikes_close_an_account_and_its_browsers(alice: User) -> None:
    browser = browser_of_user(alice, FIREFOX, "192.0.2.1")
    strike(alice, 6)
    assert is_active(alice)
    assert is_signed_in(browser)
    strike(alice, 4)
    assert not is_active(alice)
    assert not is_signed_in(browser)
    with as_system():
        assert not SignIn.objects.filter(user=alice).exists()
        assert round(Suspension.objects.get(owner=alice).points) == 10
        User.objects.update(is_active=True)
    assert not is_signed_in(browser)


def test_zero_is_never(alice: User, settings: Any) -> None:
    settings.STRIKES = Limits(settings.STRIKES.half_life, cool_down=3, suspend=0)
    strike(alice, 1000)
    assert is_active(alice)


def test_the_last_administrator_stays(admin: User, bob: User) -> None:
    strike(admin, 100)
    assert is_active(admin)
    User.objects.filter(pk=bob.pk).update(is_superuser=True)
    strike(admin, 1)
    assert not is_active(admin)


def test_one_strike_too_many_asks_for_a_look_at_the_account(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(app, "send_task", lambda *args, **more: sent.append(args))
    with as_user(alice.pk):
        Strike.objects.create(owner=alice, points=9)
        cooling.struck(str(alice.pk))
        assert sent == []
        Strike.objects.create(owner=alice, points=1)
        cooling.struck(str(alice.pk))
    ((name, arguments),) = sent
    assert is_active(alice)
    assert name == reconsider_account.name
    reconsider_account(*arguments)
    assert not is_active(alice)


@pytest.mark.parametrize("by_list", [True, False])
def test_what_a_reviewer_finds_right_lets_nobody_in_by_waiting(
    console: Client, alice: User, by_list: bool
) -> None:
    row, harmless = strike(alice, 12), strike(alice, 0)
    with as_system():
        Strike.objects.update(created_at=timezone.now() - 3 * settings.STRIKES.half_life)
        Strike.objects.filter(decision=harmless).delete()
        reconsider(alice.pk)
    for one, verdict in ((row, "uphold"), (harmless, "overturn")):
        if by_list:
            form = {"action": f"{verdict}_chosen", "_selected_action": [str(one.pk)]}
            console.post("/admin/moderation/decision/", form)
        else:
            path = f"/admin/moderation/decision/{one.pk}/change/"
            console.post(path, {"verdict": verdict, "notes": ""})
        with as_system():
            assert Decision.objects.get(pk=one.pk).review in ("upheld", "overturned")
        assert not is_active(alice)


def test_what_a_reviewer_finds_wrong_lets_them_in_again(console: Client, alice: User) -> None:
    strike(alice, 5)
    row = strike(alice, 6)
    path = f"/admin/moderation/decision/{row.pk}/change/"
    assert console.post(path, {"verdict": "uphold", "notes": ""}).status_code == 302
    assert not is_active(alice)
    assert console.post(path, {"verdict": "overturn", "notes": ""}).status_code == 302
    assert is_active(alice)


def test_many_that_were_wrong_let_their_owners_in(console: Client, alice: User, bob: User) -> None:
    rows = [strike(alice, 10), strike(bob, 10)]
    form = {"action": "overturn_chosen", "_selected_action": [str(row.pk) for row in rows]}
    assert console.post("/admin/moderation/decision/", form).status_code == 302
    assert is_active(alice)
    assert is_active(bob)


def test_strikes_open_nothing_that_an_administrator_has_closed(
    console: Client, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    row = strike(alice, 20)
    path = f"/admin/moderation/decision/{row.pk}/change/"
    assert console.post(path, {"verdict": "overturn", "notes": ""}).status_code == 302
    assert not is_active(alice)


def test_the_console_has_the_last_word(console: Client, alice: User) -> None:
    row = strike(alice, 20)
    path = f"/admin/webapp/user/{alice.pk}/change/"
    form = {"email": alice.email, "name": alice.name, "tier": alice.tier_id}
    assert console.post(path, form | {"is_active": "on"}).status_code == 302
    assert is_active(alice)
    assert console.post(path, form).status_code == 302
    path = f"/admin/moderation/decision/{row.pk}/change/"
    assert console.post(path, {"verdict": "overturn", "notes": ""}).status_code == 302
    assert not is_active(alice)


def test_scim_and_strikes_open_nothing_of_each_other(scim: Directory, alice: User) -> None:
    def set_by_scim(is_active: bool) -> Any:
        change = {"op": "replace", "path": "active", "value": is_active}
        return scim.patch(f"/Users/u{alice.pk}", change)["active"]

    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    row = strike(alice, 20)
    assert set_by_scim(False) is False
    assert set_by_scim(True) is False
    assert set_by_scim(False) is False
    with as_system():
        Strike.objects.filter(decision=row).delete()
        let_in_again(alice.pk)
    assert not is_active(alice)
    assert set_by_scim(True) is True


def test_who_is_suspended_reads_why_and_appeals_once(console: Client, alice: User) -> None:
    strike(alice, 20)
    visitor, page = sign_in(alice)
    assert "hate of people for what they are" in page
    (proof,) = re.findall(r'name="proof" value="([^"]+)"', page)
    page = visitor.post(APPEAL, {"proof": proof, "text": "It was a poem."}).content.decode()
    assert "You asked for a review." in page
    visitor.post(APPEAL, {"proof": proof, "text": "And another."})
    with as_system():
        suspension = Suspension.objects.get(owner=alice)
    assert suspension.appeal == "It was a poem."
    assert "It was a poem." in console.get(f"{LIST}{suspension.pk}/change/").content.decode()
    decide(console, alice, "keep_out")
    assert not is_active(alice)
    assert "I looked." in sign_in(alice)[1]
    decide(console, alice, "let_in")
    assert is_active(alice)
    with as_system():
        assert not Strike.objects.filter(owner=alice, lifted_at=None).exists()
    response = visitor.post(APPEAL, {"proof": proof, "text": "x"})
    assert response.headers["Location"] == LOGIN


def test_nobody_else_learns_or_says_anything(alice: User, charlie: User) -> None:
    strike(alice, 20)
    strike(charlie, 20)
    assert "hate of people" not in sign_in(alice, "a guess")[1]
    visitor, page = sign_in(charlie)
    (own,) = re.findall(r'name="proof" value="([^"]+)"', page)
    with as_system():
        pk = Suspension.objects.get(owner=alice).pk
    forged = signing.dumps([alice.pk, pk], salt="another")
    for proof in ("", own[:-1] + ("A" if own[-1] != "A" else "B"), forged):
        assert visitor.post(APPEAL, {"proof": proof, "text": "x"}).status_code == 400
    mixed = signing.dumps([charlie.pk, pk], salt="webapp.suspended_page")
    assert visitor.post(APPEAL, {"proof": mixed, "text": "x"}).status_code == 302
    with as_user(charlie.pk):
        assert [row.owner for row in Suspension.objects.all()] == [charlie]
    with as_system():
        assert Suspension.objects.get(pk=pk).appeal == ""
    charlie.is_active = True
    charlie.save()
    visitor.force_login(charlie)
    assert visitor.get(LIST).status_code in (302, 403)


def test_an_account_with_all_of_it_can_be_deleted(console: Client, alice: User) -> None:
    strike(alice, 20)
    response = console.post(f"/admin/webapp/user/{alice.pk}/delete/", {"post": "yes"})
    assert response.status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
