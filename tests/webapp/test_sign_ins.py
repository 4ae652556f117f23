"""The browsers in which somebody is signed in, and ending one from another."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.conftest import PASSWORD
from tests.plans import plan_of, queries
from webapp.models import SignIn, User
from webapp.sign_ins import forget_dead_sign_ins, lately_noted, sign_ins_of
from webapp.tenancy import as_nobody, as_system, as_user
from webapp.user_agents import browser_of, system_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

PAGE = "/settings/sessions"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/18.0 Mobile/15E148 Safari/604.1"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0"
)


@pytest.mark.parametrize(
    ("user_agent", "browser", "system"),
    [
        (FIREFOX, "Firefox", "Linux"),
        (IPHONE, "Safari", "iPhone"),
        (EDGE, "Edge", "Windows"),
        ("", "", ""),
        ("<script>alert(1)</script>", "", ""),
    ],
)
def test_a_browser_in_words(user_agent: str, browser: str, system: str) -> None:
    assert (browser_of(user_agent), system_of(user_agent)) == (browser, system)


def browser_of_user(user: User, user_agent: str, address: str) -> Client:
    client = Client(HTTP_USER_AGENT=user_agent, REMOTE_ADDR=address)
    client.force_login(user)
    assert client.get(PAGE).status_code == 200
    return client


def ids_of(user: User) -> dict[str, int]:
    with as_user(user.pk):
        return dict(SignIn.objects.values_list("address", "pk"))


def is_signed_in(client: Client) -> bool:
    return client.get("/accounts/password/change/").status_code == 200


def test_the_page_shows_each_browser_and_marks_this_one(alice: User, bob: User) -> None:
    browser_of_user(alice, IPHONE, "2001:db8::7")
    browser_of_user(bob, EDGE, "192.0.2.99")
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    page = here.get(PAGE).content.decode()
    assert page.count("<li class=") == 2
    assert page.index("Firefox on Linux") < page.index("This browser")
    assert page.index("This browser") < page.index("Safari on iPhone")
    assert "2001:db8::7" in page
    assert "192.0.2.99" not in page
    for session_key in SignIn.objects.values_list("session_key", flat=True):
        assert session_key not in page


def test_ending_one_ends_that_one(alice: User) -> None:
    phone = browser_of_user(alice, IPHONE, "192.0.2.2")
    laptop = browser_of_user(alice, EDGE, "192.0.2.3")
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    response = here.post(PAGE, {"end": ids_of(alice)["192.0.2.2"]}, follow=True)
    assert "That browser is signed out" in response.content.decode()
    assert [is_signed_in(one) for one in (phone, laptop, here)] == [False, True, True]


def test_ending_all_others_leaves_this_one(alice: User, bob: User) -> None:
    others = [browser_of_user(alice, IPHONE, f"192.0.2.{n}") for n in (2, 3)]
    foreign = browser_of_user(bob, EDGE, "192.0.2.9")
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    here.post(PAGE, {"others": "yes"})
    assert [is_signed_in(one) for one in others] == [False, False]
    assert is_signed_in(here)
    assert is_signed_in(foreign)


def test_a_session_that_has_rested_since_its_sign_in_is_shown_and_ended_too(alice: User) -> None:
    rests = Client(HTTP_USER_AGENT=EDGE, REMOTE_ADDR="192.0.2.3")
    form = {"login": alice.email, "password": PASSWORD}
    assert rests.post("/accounts/login/", form).status_code == 302
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    assert "Edge on Windows" in here.get(PAGE).content.decode()
    here.post(PAGE, {"others": "yes"})
    assert not is_signed_in(rests)


@pytest.mark.parametrize("wrong", ["", "x", "-1", "0", "1" * 30, "1 OR 1=1", "²"])
def test_what_is_no_id_ends_nothing(alice: User, wrong: str) -> None:
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    assert here.post(PAGE, {"end": wrong}).status_code == 302
    assert is_signed_in(here)


def test_nobody_ends_or_sees_somebody_elses(alice: User, charlie: User) -> None:
    victim = browser_of_user(alice, FIREFOX, "192.0.2.1")
    stranger = browser_of_user(charlie, EDGE, "192.0.2.9")
    stranger.post(PAGE, {"end": ids_of(alice)["192.0.2.1"]})
    assert is_signed_in(victim)
    with as_user(charlie.pk):
        assert list(SignIn.objects.values_list("address", flat=True)) == ["192.0.2.9"]
    with as_nobody():
        assert not SignIn.objects.exists()
    assert Client().get(PAGE).headers["Location"].startswith("/accounts/login/")
    assert Client().post(PAGE, {"others": "yes"}).status_code == 302


def test_ending_needs_a_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(PAGE, {"others": "yes"}).status_code == 403


def test_the_dead_are_not_shown(alice: User) -> None:
    left = browser_of_user(alice, IPHONE, "192.0.2.2")
    left.post("/accounts/logout/")
    stale = browser_of_user(alice, EDGE, "192.0.2.3")
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    form = {"oldpassword": PASSWORD, "password1": "a new horse 42", "password2": "a new horse 42"}
    here.post("/accounts/password/change/", form)
    assert not is_signed_in(stale)
    here.get(PAGE)
    with as_user(alice.pk):
        shown = sign_ins_of(alice, here.session.session_key)
    assert [(one.address, one.is_this_one) for one in shown] == [("192.0.2.1", True)]


def test_being_seen_is_written_once_a_minute(
    alice: User, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = browser_of_user(alice, FIREFOX, "192.0.2.1")
    with django_assert_num_queries(1):  # the user
        here.get("/settings/language")
    before = timezone.now() - timedelta(minutes=2)
    with as_user(alice.pk):
        SignIn.objects.update(last_seen_at=before)
    lately_noted._noted_s.clear()
    here.get("/settings/language", REMOTE_ADDR="192.0.2.77")
    with as_user(alice.pk):
        row = SignIn.objects.get()
    assert row.address == "192.0.2.77"
    assert row.last_seen_at > before


def test_the_nightly_chore_forgets_what_has_ended(alice: User) -> None:
    browser_of_user(alice, IPHONE, "192.0.2.2").post("/accounts/logout/")
    browser_of_user(alice, FIREFOX, "192.0.2.1")
    with as_system():
        SignIn.objects.update(last_seen_at=timezone.now() - timedelta(minutes=2))
        forget_dead_sign_ins()
        assert list(SignIn.objects.values_list("address", flat=True)) == ["192.0.2.1"]


def test_sessions_are_not_gone_through_for_each_sign_in() -> None:
    """As Postgres does with `NOT IN`, once they take more than its memory for a table of them."""
    with as_system():
        with queries() as statements:
            forget_dead_sign_ins()
        [deletion] = [one for one in statements if one.startswith("DELETE")]
        assert "Anti Join" in plan_of(deletion)
