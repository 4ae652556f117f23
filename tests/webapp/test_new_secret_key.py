"""A new SECRET_KEY: nothing is lost while the old one is a fallback, nor once all is sealed anew."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from chat import sharing
from chat.models import Conversation, Message, Share
from chat.screen import Screen
from chat.sealing import key_marks
from moderation.text_hashes import text_hash
from tests.conftest import PASSWORD
from tests.sites import ROOT, Site, SiteMaker, running, wait_until
from tests.webapp.token_client import (
    COOKIE,
    REFRESH,
    add_app,
    code_of,
    opens,
    token_of,
)
from webapp import resealing
from webapp.models import SecurityEvent, User
from webapp.principal import session_store
from webapp.secret_key import stored_secret_keys
from webapp.security_events import hash_of
from webapp.serving.lock import hold_lock
from webapp.tenancy import as_system, as_user

OLD, NEW, NEWER = (f"{name} key of this site as long as one has to be" for name in "abc")

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]

Change = Callable[..., None]


@pytest.fixture
def key(settings: Any) -> Change:
    """A restart with this SECRET_KEY and these of before."""

    def change(present: str, *old: str) -> None:
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = present, list(old)

    change(OLD)
    return change


def reseal(*arguments: str) -> tuple[int, str]:
    """The exit code, and all that was said."""
    out = StringIO()
    try:
        call_command("reseal", *arguments, stdout=out, stderr=out)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def is_in(client: Client) -> bool:
    return client.get("/settings/security/").status_code == 200


def share_of(user: User) -> Share:
    with as_user(user.pk):
        chat = Conversation.objects.create(owner=user, title="A title", model="m")
        asked = Message.objects.create(conversation=chat, role="user", text="q", parts=[])
        answer = Message.objects.create(
            conversation=chat, parent=asked, role="assistant", text="a", parts=[]
        )
        return sharing.create(user, sharing.ShareWish(chat.pk, answer.pk))


def url_of(share: Share) -> str | None:
    with as_system():
        url: str | None = sharing.share_value(Share.objects.get(pk=share.pk))["url"]
    return url


def test_nothing_is_lost_on_the_way_to_a_new_key(alice: User, key: Change) -> None:
    secret, browser = add_app(alice), signed_in(alice)
    codes = RecoveryCodes.activate(alice).generate_codes()
    share = share_of(alice)
    url = url_of(share)
    assert url
    for before, after in ((OLD, NEW), (NEW, NEWER)):
        key(after, before)
        assert url_of(share) == url
        assert is_in(browser)
        assert is_in(browser), "its session keeps its id"
        assert TOTP(Authenticator.objects.get(type="totp")).validate_code(code_of(secret))
        cache.clear()
        code, told = reseal("--check")
        assert code == 1
        assert "2 second steps: 2 need an old key" in told
        assert "1 share links: 1 need an old key" in told
        assert "1 sessions: 1 need an old key" in told
        kept = rows()
        assert reseal("--check")[1] == told
        assert rows() == kept, "a check changes nothing"
        code, told = reseal()
        assert (code, "2 second steps: 2 sealed anew." in told) == (0, True), told
        assert "within 7 days" in told
        assert reseal("--check")[0] == 0
        kept = rows()
        assert "2 second steps: 0 sealed anew." in reseal()[1]
        assert rows() == kept, "nothing is written a second time"
        key(after)
        assert is_in(browser)
        assert url_of(share) == url
        assert browser.get(url).status_code == 200
        assert TOTP(Authenticator.objects.get(type="totp")).validate_code(code_of(secret))
        assert RecoveryCodes.activate(alice).generate_codes() == codes
        cache.clear()
    key(OLD)
    assert not is_in(browser), "the old key opens nothing"
    assert url_of(share) == url, "but its own, which anybody who has it may reckon"


def rows() -> str:
    with as_system():
        models = (Authenticator, Share, Session)
        return str([list(model.objects.order_by("pk").values()) for model in models])


@pytest.mark.urls("tests.webapp.urls")
def test_tokens_live_on(client: Client, alice: User, key: Change) -> None:
    first = token_of(client, alice)
    key(NEW, OLD)
    assert opens(first)
    assert opens(first), "its session keeps its id"
    assert client.post(REFRESH).status_code == 200
    assert reseal()[0] == 0
    key(NEW)
    assert not opens(first)
    assert client.post(REFRESH).status_code == 200, client.cookies[COOKIE]


def test_others_who_look_at_a_session_end_none(alice: User, key: Change) -> None:
    """A page that lists sign-ins asks of each whether it lives."""
    here, there = signed_in(alice), signed_in(alice)
    assert is_in(there)
    key(NEW, OLD)
    assert here.get("/settings/sessions").status_code in (200, 404)
    for _ in range(2):
        assert here.get("/settings/security/").status_code == 200
        assert is_in(there)


def test_a_copy_of_a_session_in_the_cache_ends_none(alice: User, key: Change) -> None:
    browser = signed_in(alice)
    key(NEW, OLD)
    assert is_in(browser), "and it is in the cache now"
    reseal()
    key(NEW)
    assert is_in(browser)


def test_a_session_that_a_new_password_has_ended_stays_ended(alice: User, key: Change) -> None:
    browser = signed_in(alice)
    alice.set_password("another one entirely")
    alice.save()
    key(NEW, OLD)
    cache.clear()
    assert reseal()[0] == 0
    key(NEW)
    assert not is_in(browser)


def test_digests_of_before_are_known(alice: User, admin: User, key: Change) -> None:
    before = text_hash("7", "Something odd")
    with as_system():
        SecurityEvent.objects.create(kind="sign_in_failed", login=hash_of("ada@example.org"))
    console = signed_in(admin)
    key(NEW, "between" * 10, OLD)
    assert text_hash("7", "Something odd") != before
    screen = Screen.__new__(Screen)
    request = type("Request", (), {"user": "7", "plan": None, "confirmed_texts": {before}})
    object.__setattr__(screen, "request", request)
    assert screen._are_confirmed(["Something odd"])
    assert not screen._are_confirmed(["Something odd", "else"])
    found = console.get("/admin/webapp/securityevent/", {"q": "ada@example.org"})
    assert "1 result" in found.content.decode()
    key(NEW)
    assert not screen._are_confirmed(["Something odd"])


def test_what_no_known_key_opens_is_named_and_left(alice: User, bob: User, key: Change) -> None:
    key("lost" * 20)
    lost, browser = share_of(alice), signed_in(alice)
    add_app(alice)
    odd: list[Any] = [{}, [], 7, {"secret": None}, {"secret": ["gAAAA", 7]}, {"secret": "ü\x7f"}]
    people = [User.objects.create_user(f"{n}@example.org", PASSWORD) for n, _ in enumerate(odd)]
    for person, data in zip(people, odd, strict=True):
        Authenticator.objects.create(user=person, type="totp", data=data)
    share = share_of(bob)
    with as_system():
        Share.objects.filter(pk=share.pk).update(sealed_token="gAAAAnonsense", token_hash="0" * 64)
    key(OLD)
    add_app(bob)
    key(NEW, OLD)
    code, told = reseal()
    assert code == 2
    assert "8 second steps: 1 sealed anew, 7 opened by no known key." in told
    for row in Authenticator.objects.exclude(user=bob):
        assert f"No known key opens mfa_authenticator {row.pk}." in told
    assert f"No known key opens chat_share {lost.pk}." in told
    assert f"No known key opens chat_share {share.pk}." in told
    assert "1 sessions: 0 sealed anew, 1 opened by no known key." in told
    assert browser.session.session_key not in told
    left = [row.data for row in Authenticator.objects.filter(user__in=people).order_by("pk")]
    assert left == odd
    assert reseal("--check")[0] == 2
    key(NEW)
    assert reseal("--check")[0] == 2
    assert browser.get(f"/s/{'x' * 43}").status_code == 302
    key("lost" * 20, NEW)
    assert url_of(lost), "should it be found again"


@pytest.mark.parametrize("weak", ["short", "a" * 64, "ab" * 40, "x" * 20 + "0123456789"])
def test_nothing_is_sealed_with_a_weak_key(alice: User, key: Change, weak: str) -> None:
    add_app(alice)
    key(weak, OLD)
    kept = rows()
    code, told = reseal()
    assert (code, "too weak" in told, weak in told) == (1, True, False)
    assert rows() == kept
    assert reseal("--check")[0] == 1
    key(OLD, weak)
    assert reseal()[0] == 0, "to leave one is what it is for"


def test_the_same_key_is_no_new_one(alice: User, key: Change) -> None:
    add_app(alice)
    key(OLD, OLD, OLD)
    code, told = reseal()
    assert (code, "it is no new key" in told) == (0, True)
    assert "1 second steps: 0 sealed anew." in told
    assert "SECRET_KEY_FALLBACKS, and start" not in told


# --- beside others ------------------------------------------------------------------------------


@contextlib.contextmanager
def somebody(change: Callable[[], None]) -> Iterator[threading.Event]:
    """Who has a row under their lock, until they are told to go on: then they change it, and commit."""
    has_it, may_go_on = threading.Event(), threading.Event()

    def work() -> None:
        try:
            with transaction.atomic():
                list(Authenticator.objects.select_for_update())
                has_it.set()
                assert may_go_on.wait(20)
                change()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert has_it.wait(20)
    try:
        yield may_go_on
    finally:
        may_go_on.set()
        thread.join()


def use_a_code() -> None:
    RecoveryCodes(Authenticator.objects.get(type="recovery_codes"))._mark_code_used(3)


def sign_off() -> None:
    Authenticator.objects.all().delete()


@pytest.mark.parametrize("change", [use_a_code, sign_off])
def test_what_somebody_writes_meanwhile_is_not_lost(
    alice: User, key: Change, change: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    RecoveryCodes.activate(alice)
    key(NEW, OLD)
    with somebody(change) as may_go_on:
        monkeypatch.setattr(resealing, "_PAUSE_S", 0.01)
        code, told = reseal()
        assert (code, "1 still need an old key. Somebody else" in told) == (1, True)
        monkeypatch.setattr(resealing, "_PAUSE_S", 2.0)
        threading.Timer(0.5, may_go_on.set).start()
        code, told = reseal()
    assert code == 0, told
    if change is sign_off:
        assert not Authenticator.objects.exists()
        return
    codes = RecoveryCodes(Authenticator.objects.get())
    assert len(codes.get_unused_codes()) == 9
    key(NEW)
    assert codes._is_code_used(3)
    assert len(codes.generate_codes()) == 10


def many_sessions(number: int) -> None:
    data = session_store().encode({"a": 1})
    ends = timezone.now() + timezone.timedelta(days=1)
    Session.objects.bulk_create(
        Session(session_key=f"{n:032}", session_data=data, expire_date=ends) for n in range(number)
    )


def test_two_at_once_seal_each_row_once(key: Change) -> None:
    many_sessions(1500)
    key(NEW, OLD)
    found = []

    def run() -> None:
        try:
            found.append(reseal())
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [code for code, _ in found] == [0, 0], found
    sealed = [int(told.split(" sessions: ")[1].split(" ")[0].replace(",", "")) for _, told in found]
    assert sum(sealed) == 1500
    key(NEW)
    assert reseal("--check") == (0, reseal("--check")[1])
    assert "1,500 sessions: 0 need an old key." in reseal("--check")[1]


# --- keys that Vitrine keeps itself --------------------------------------------------------


def test_old_keys_are_forgotten_once_nothing_needs_them(
    alice: User, key: Change, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restart() -> None:
        key(*stored_secret_keys(tmp_path))

    settings.DATA_DIR = tmp_path
    restart()
    add_app(alice)
    (old,) = stored_secret_keys(tmp_path)
    for _ in range(2):
        call_command("newkey", stdout=StringIO())
    restart()
    keys = stored_secret_keys(tmp_path)
    assert (len(keys), keys[2]) == (3, old)
    code, told = reseal("--forget")
    assert (code, "1 need an old key: `manage.py reseal`" in told) == (1, True)
    assert reseal()[0] == 0
    call_command("newkey", stdout=StringIO())  # of which that process knows nothing
    code, told = reseal("--forget")
    assert (code, "2 old keys are forgotten" in told) == (0, True)
    assert stored_secret_keys(tmp_path)[1:] == keys[:1]
    monkeypatch.setenv("SECRET_KEY", "of the environment" * 3)
    kept = stored_secret_keys(tmp_path)
    code, told = reseal("--forget")
    assert (code, "SECRET_KEY_FALLBACKS" in told) == (1, True)
    with pytest.raises(CommandError, match="SECRET_KEY_FALLBACKS"):
        call_command("newkey")
    assert stored_secret_keys(tmp_path) == kept


def test_beside_a_serve_that_could_not_open_it_nothing_is_sealed(
    alice: User, key: Change, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    add_app(alice)
    lock = hold_lock(tmp_path, "http://127.0.0.1:1", key_marks())
    try:
        key(NEW, OLD)
        kept = rows()
        code, told = reseal()
        assert (code, "start it anew first" in told) == (1, True)
        assert reseal("--check")[0] == 1
        assert rows() == kept
        key(OLD, NEW)
        code, told = reseal("--forget")
        assert (code, "goes on sealing with it" in told) == (0, False)
    finally:
        os.close(lock)
    lock = hold_lock(tmp_path, "http://127.0.0.1:1", key_marks())  # it knows both
    try:
        key(NEW, OLD)
        assert reseal()[0] == 0
        code, told = reseal("--forget")
        assert (code, "goes on sealing with it" in told) == (1, True)
    finally:
        os.close(lock)


@pytest.mark.timeout(400)
def test_a_site_with_a_key_of_its_own_gets_a_new_one(make_site: SiteMaker) -> None:
    site = make_site()
    file = site.data_dir / "secret_key"
    with running(site):
        admin = site.set_up()
        (old,) = keys_of(file)
        done = site.manage("newkey")
        assert done.returncode == 0, done.stderr
        new, *others = keys_of(file)
        assert (others, new != old) == ([old], True)
        assert old not in done.stdout
        assert new not in done.stdout
        refused = site.manage("reseal")
        assert (refused.returncode, "start it anew first" in refused.stderr) == (1, True)
        assert admin.get("/admin/").status_code == 200
    with running(site):
        assert admin.get("/admin/").status_code == 200
        done = site.manage("reseal")
        assert done.returncode == 0, done.stderr
        assert "manage.py reseal --forget" in done.stdout
        done = site.manage("reseal", "--forget")
        assert (done.returncode, keys_of(file)) == (0, [new]), done.stderr
        assert "1 old keys are forgotten" in done.stdout
    with running(site):
        assert admin.get("/admin/").status_code == 200


def keys_of(file: Path) -> list[str]:
    return file.read_text().split()


@pytest.mark.timeout(400)
def test_what_is_killed_in_the_middle_is_said_again(make_site: SiteMaker) -> None:
    """With the database, which the command has started."""
    site = make_site()
    done = site.manage("shell", "--no-imports", "-c", MANY)
    assert done.returncode == 0, done.stderr
    keys = {"SECRET_KEY": NEW, "SECRET_KEY_FALLBACKS": f"between, {OLD}"}
    command = [sys.executable, str(ROOT / "manage.py"), "reseal"]
    process = subprocess.Popen(command, env=site.whole_environment | keys)
    wait_until(lambda: num_changed(site) > 0 or process.poll() is not None)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    done = site.manage("reseal", "--check", **keys)
    assert done.returncode == 1, done.stderr
    (left,) = re.findall(r"400 sessions: ([0-9]+) need", done.stdout)
    assert 0 < int(left) < 400
    done = site.manage("reseal", **keys)
    assert (done.returncode, f"{left} sealed anew" in done.stdout) == (0, True), done.stderr
    assert site.manage("reseal", "--check", SECRET_KEY=NEW).returncode == 0


MANY = (
    "from tests.webapp.test_new_secret_key import many_sessions, OLD;"
    "from django.conf import settings; settings.SECRET_KEY = OLD; many_sessions(400);"
    "from django.db import connection; connection.cursor().execute('''"
    "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS "
    "$$BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END$$;"
    "CREATE TRIGGER slow BEFORE UPDATE ON django_session FOR EACH ROW EXECUTE FUNCTION dawdle()"
    "''')"
)


def num_changed(site: Site) -> int:
    """While there is a database."""
    with contextlib.suppress(psycopg.OperationalError), site.connection() as connection:
        sql = "SELECT count(DISTINCT session_data) - 1 FROM django_session"
        return int(connection.execute(sql).fetchone()[0])  # type: ignore[index]
    return 0
