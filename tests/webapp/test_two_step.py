"""Authenticator apps and recovery codes; passkeys are in tests/browser/test_passkeys.py."""

import base64
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core import mail
from django.db import connection
from django.test import Client

from chat.sealing import Unreadable, seal, unseal
from tests.conftest import PASSWORD
from tests.sites import wait_until
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

SECURITY, APP = "/settings/security/", "/settings/security/app"
SECOND_STEP, LOGIN = "/accounts/second-step/", "/accounts/login/"
CODES = "/settings/security/codes"


def code_of(secret: str, steps: int = 0) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


def confirm(client: Client, path: str) -> Any:
    """Give the password where a page asks for it."""
    response = client.get(path)
    assert response.status_code == 302, "asks who it is"
    where = response.headers["Location"]
    assert where.startswith("/accounts/reauthenticate/")
    return client.post(where, {"password": PASSWORD, "next": path})


def add_app(client: Client) -> str:
    """The secret."""
    confirm(client, APP)
    page = client.get(APP).content.decode()
    secret = re.search(r'enrol__key"[^>]*>([A-Z2-7]{32})<', page)
    assert secret, page
    response = client.post(APP, {"code": code_of(secret[1])})
    assert response.status_code == 302, response.content.decode()
    return secret[1]


@pytest.fixture
def signed_in(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def password_step(client: Client, user: User) -> Any:
    return client.post(LOGIN, {"login": user.email, "password": PASSWORD})


def is_signed_in(client: Client) -> bool:
    return client.get(SECURITY).status_code == 200


def codes_of(client: Client) -> list[str]:
    return re.findall(r"<code>(\d{8})</code>", client.get(CODES).content.decode())


def test_without_mail_and_so_without_a_verified_address_it_can_be_had(
    signed_in: Client, alice: User
) -> None:
    secret = add_app(signed_in)
    codes = codes_of(signed_in)
    assert len(set(codes)) == 10
    visitor = Client()
    assert password_step(visitor, alice).headers["Location"] == SECOND_STEP
    assert not is_signed_in(visitor), "the password alone is not enough"
    wrong = visitor.post(SECOND_STEP, {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    assert visitor.post(SECOND_STEP, {"code": code_of(secret, 1)}).status_code == 302
    assert is_signed_in(visitor)


def test_what_is_kept_opens_nothing(signed_in: Client, alice: User) -> None:
    secret = add_app(signed_in)
    codes = codes_of(signed_in)
    kept = str(list(Authenticator.objects.values()))
    assert secret not in kept
    assert base64.b32decode(secret).hex() not in kept
    assert not any(code in kept for code in codes)
    assert secret not in str(dict(signed_in.session.items()))


def test_sealed_is_sealed(settings: Any) -> None:
    settings.SECRET_KEY = "old" * 20
    sealed = seal("words")
    assert "words" not in sealed
    assert seal("words") != sealed
    assert unseal(sealed) == "words"
    settings.SECRET_KEY = "new" * 20
    with pytest.raises(Unreadable):
        unseal(sealed)
    settings.SECRET_KEY_FALLBACKS = ["old" * 20]
    assert unseal(sealed) == "words"


def test_after_the_secret_key_has_changed_nobody_gets_in_and_the_page_says_why(
    signed_in: Client, alice: User, settings: Any
) -> None:
    secret = add_app(signed_in)
    settings.SECRET_KEY = "another" * 10
    visitor = Client()
    password_step(visitor, alice)
    page = visitor.post(SECOND_STEP, {"code": code_of(secret, 1)}).content.decode()
    assert "secret key has changed" in page
    assert not is_signed_in(visitor)


@pytest.mark.parametrize("path", [CODES, f"{CODES}/download", f"{CODES}/new"])
def test_after_the_secret_key_has_changed_pages_of_codes_say_why_there_are_none(
    signed_in: Client, alice: User, settings: Any, path: str
) -> None:
    """To whom a passkey has let in, for one."""
    add_app(signed_in)
    settings.SECRET_KEY = "another" * 10
    signed_in.force_login(alice, backend="allauth.account.auth_backends.AuthenticationBackend")
    confirm(signed_in, path)
    assert "secret key has changed" in signed_in.get(path, follow=True).content.decode()


def test_a_code_works_once(signed_in: Client, alice: User) -> None:
    code = code_of(add_app(signed_in), 1)
    first, second = Client(), Client()
    for visitor in (first, second):
        password_step(visitor, alice)
        visitor.post(SECOND_STEP, {"code": code})
    assert (is_signed_in(first), is_signed_in(second)) == (True, False)


def test_a_recovery_code_works_once(signed_in: Client, alice: User) -> None:
    add_app(signed_in)
    code = codes_of(signed_in)[3]
    first, second = Client(), Client()
    for visitor in (first, second):
        password_step(visitor, alice)
        visitor.post(SECOND_STEP, {"code": code})
    assert (is_signed_in(first), is_signed_in(second)) == (True, False)
    assert "9 codes left" in signed_in.get(SECURITY).content.decode()
    assert code not in codes_of(signed_in)


@pytest.mark.django_db(transaction=True)
def test_of_many_with_one_recovery_code_one_gets_in(clean_redis: None) -> None:
    ada = User.objects.create_user("ada@example.org", PASSWORD)
    client = Client()
    client.force_login(ada)
    add_app(client)
    code = codes_of(client)[0]
    visitors = [Client(REMOTE_ADDR=f"198.51.100.{n}") for n in range(8)]
    for visitor in visitors:
        password_step(visitor, ada)

    def enter(visitor: Client) -> bool:
        try:
            visitor.post(SECOND_STEP, {"code": code})
            return is_signed_in(visitor)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(enter, visitors)) == 1


def test_guessing_codes_ends_from_whatever_address(signed_in: Client, alice: User) -> None:
    add_app(signed_in)
    statuses = []
    for n in range(11):
        visitor = Client(REMOTE_ADDR=f"198.51.100.{n}")
        password_step(visitor, alice)
        statuses.append(visitor.post(SECOND_STEP, {"code": f"{n:06}"}).status_code)
    assert statuses == [200] * 10 + [429]


def test_who_has_no_password_cannot_use_up_anybodys_tries(
    signed_in: Client, alice: User, charlie: User
) -> None:
    secret = add_app(signed_in)
    for n in range(12):
        stranger = Client(REMOTE_ADDR=f"203.0.113.{n}")
        assert stranger.post(SECOND_STEP, {"code": "123456"}).status_code in (302, 429)
    visitor = Client(REMOTE_ADDR="198.51.100.7")
    password_step(visitor, alice)
    visitor.post(SECOND_STEP, {"code": code_of(secret, 1)})
    assert is_signed_in(visitor)


@pytest.mark.parametrize(
    "path",
    [
        APP,
        "/settings/security/app/remove",
        CODES,
        "/settings/security/codes/new",
        "/settings/security/passkeys/add",
    ],
)
def test_a_stolen_session_changes_nothing_without_a_proof(
    signed_in: Client, alice: User, path: str
) -> None:
    add_app(signed_in)
    thief = Client()
    thief.force_login(alice)
    before = list(Authenticator.objects.values())
    for response in (thief.get(path), thief.post(path, {"code": "1", "credential": "{}"})):
        if response.status_code == 302:
            assert response.headers["Location"].startswith(("/accounts/reauth", APP))
        assert "<code>" not in response.content.decode()
    assert list(Authenticator.objects.values()) == before
    assert thief.get(CODES + "/download").status_code in (302, 404)


def test_a_proof_is_a_password_or_a_code_and_lasts_five_minutes(
    signed_in: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = add_app(signed_in)
    other = Client()
    other.force_login(alice)
    page = other.get(f"/accounts/reauthenticate/?next={CODES}").content.decode()
    assert "/accounts/reauthenticate/code/" in page
    wrong = other.post("/accounts/reauthenticate/code/", {"code": "000000", "next": CODES})
    assert wrong.status_code == 200
    form = {"code": code_of(secret, 1), "next": CODES}
    assert other.post("/accounts/reauthenticate/code/", form).headers["Location"] == CODES
    assert other.get(CODES).status_code == 200
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 301)
    assert other.get(CODES).status_code == 302


def test_guessing_the_password_of_a_proof_ends(signed_in: Client) -> None:
    codes = [
        signed_in.post("/accounts/reauthenticate/", {"password": f"guess {n}"}).status_code
        for n in range(11)
    ]
    assert codes == [200] * 10 + [429]


def test_removing_the_app_takes_its_codes_along(signed_in: Client, alice: User) -> None:
    add_app(signed_in)
    assert signed_in.post("/settings/security/app/remove").status_code == 302
    assert not Authenticator.objects.exists()
    visitor = Client()
    password_step(visitor, alice)
    assert is_signed_in(visitor)


def test_new_codes_end_the_old_ones(signed_in: Client, alice: User) -> None:
    add_app(signed_in)
    old = codes_of(signed_in)
    assert signed_in.post("/settings/security/codes/new").status_code == 302
    new = codes_of(signed_in)
    assert not set(old) & set(new)
    visitor = Client()
    password_step(visitor, alice)
    visitor.post(SECOND_STEP, {"code": old[0]})
    assert not is_signed_in(visitor)
    download = signed_in.get(CODES + "/download")
    assert set(download.content.decode().split()) == set(new)
    assert "no-store" in download.headers["Cache-Control"]


def test_an_administrator_can_take_a_second_step_away_and_not_look_at_it(
    signed_in: Client, alice: User, admin: User
) -> None:
    add_app(signed_in)
    console = Client()
    console.force_login(admin)
    row = Authenticator.objects.get(type="totp")
    page = console.get(f"/admin/mfa/authenticator/{row.pk}/change/").content.decode()
    assert row.data["secret"] not in page
    assert console.get("/admin/mfa/authenticator/add/").status_code == 403
    console.post(f"/admin/mfa/authenticator/{row.pk}/delete/", {"post": "yes"})
    visitor = Client()
    password_step(visitor, alice)
    assert is_signed_in(visitor)


def test_the_owner_gets_a_letter(
    signed_in: Client, alice: User, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    with django_capture_on_commit_callbacks(execute=True):
        add_app(signed_in)
    wait_until(lambda: mail.outbox, what="a letter")
    assert mail.outbox[0].to == [alice.email]


def test_strangers_are_sent_to_the_entrance() -> None:
    for path in (SECURITY, APP, CODES, SECOND_STEP, "/settings/security/passkeys/add"):
        response = Client().get(path)
        assert response.headers["Location"].startswith(LOGIN)
