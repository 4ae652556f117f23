"""The way to the directory: encryption, servers that are away, and servers that never answer."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import AsyncClient, Client

from tests.conftest import PASSWORD
from tests.webapp.directory_visits import LOGIN, SECRET
from tests.webapp.slapd import Slapd, write_certificates
from webapp import directory as asked
from webapp.directory import DirectoryUnavailable, prove
from webapp.directory_settings import LdapServer
from webapp.models import User

AWAY = LdapServer("127.0.0.1", 1, False)


@pytest.fixture
def dora(slapd: Slapd) -> Iterator[Slapd]:
    slapd.add_person("dora", SECRET)
    yield slapd
    slapd.clear()


@pytest.fixture
def silent() -> Iterator[LdapServer]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield LdapServer("127.0.0.1", server.getsockname()[1], False)


@pytest.fixture
def other_ca(tmp_path: Path) -> ssl.SSLContext:
    write_certificates(tmp_path)
    return ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))


def ways(slapd: Slapd) -> list[dict[str, Any]]:
    tls = {"servers": (LdapServer("127.0.0.1", slapd.tls_port, True),)}
    return [tls, {"starttls": True}]


def test_tls_and_starttls_with_a_ca_of_ones_own(dora: Slapd) -> None:
    for way in ways(dora):
        found = prove(dora.settings(**way), "dora", SECRET)
        assert found is not None, way


def test_another_ca_is_refused_before_any_password_is_sent(
    dora: Slapd, other_ca: ssl.SSLContext
) -> None:
    for way in ways(dora):
        for context in (other_ca, ssl.create_default_context()):
            with pytest.raises(DirectoryUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                prove(dora.settings(tls=context, **way), "dora", SECRET)


def test_another_name_in_the_certificate_is_refused(dora: Slapd) -> None:
    for way in ways(dora):
        config = dora.settings(**way)
        named = tuple(replace(server, host="localhost") for server in config.servers)
        with pytest.raises(DirectoryUnavailable, match="localhost"):
            prove(replace(config, servers=named), "dora", SECRET)


def test_a_server_that_does_not_know_starttls_gets_no_password(dora: Slapd) -> None:
    """Or somebody in between could say so, and read along."""
    heard = []

    def refuse(server: socket.socket) -> None:
        browser, _ = server.accept()
        with browser:
            heard.append(browser.recv(4096))
            number = heard[0][4:5].hex()
            browser.sendall(bytes.fromhex(f"300c0201{number}78070a010204000400"))  # protocolError
            heard.append(browser.recv(4096))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=refuse, args=(server,))
        thread.start()
        where = (LdapServer("127.0.0.1", server.getsockname()[1], False),)
        with pytest.raises(DirectoryUnavailable):
            prove(dora.settings(servers=where, starttls=True), "dora", SECRET)
        thread.join()
    assert b"1.3.6.1.4.1.1466.20037" in heard[0]
    assert b"secret" not in b"".join(heard)


def test_another_server_is_asked_where_one_is_away(dora: Slapd) -> None:
    config = dora.settings()
    assert prove(replace(config, servers=(AWAY, *config.servers)), "dora", SECRET) is not None


def test_a_directory_without_a_service_account_is_asked_anonymously(dora: Slapd) -> None:
    """Ours shows such a one nothing, and that is no failure of the directory's."""
    config = dora.settings(bind_dn="", bind_password="")
    with pytest.raises(DirectoryUnavailable, match="noSuchObject"):
        prove(config, "dora", SECRET)


@pytest.mark.parametrize("way", [{}, {"starttls": True}, {"is_tls": True}])
def test_a_server_that_never_answers_costs_the_timeout(
    dora: Slapd, silent: LdapServer, way: dict[str, bool]
) -> None:
    server = replace(silent, is_tls=way.get("is_tls", False))
    config = dora.settings(servers=(server,), starttls=way.get("starttls", False), timeout_s=1)
    began_s = time.monotonic()
    with pytest.raises(DirectoryUnavailable):
        prove(config, "dora", SECRET)
    assert 0.9 < time.monotonic() - began_s < 2.5


def test_a_directory_that_hangs_takes_only_so_many_threads(
    dora: Slapd, silent: LdapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_AT_ONCE", threading.BoundedSemaphore(1))
    config = dora.settings(servers=(silent,), timeout_s=1)
    with asked._AT_ONCE, pytest.raises(DirectoryUnavailable, match="too many"):
        prove(config, "dora", SECRET)
    with pytest.raises(DirectoryUnavailable, match="timed out"):
        prove(config, "dora", SECRET)
    assert prove(dora.settings(), "dora", SECRET) is not None, "the places are given back"


def test_a_referral_is_not_followed(dora: Slapd) -> None:
    """Its server would be shown the service account's password."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        where = f"ldap://127.0.0.1:{elsewhere.getsockname()[1]}/dc=elsewhere"
        with dora.referral(where) as dn:
            assert prove(dora.settings(), "dora", SECRET) is not None, "beside it"
            with pytest.raises(DirectoryUnavailable, match="referral"):
                prove(dora.settings(user_base=dn), "dora", SECRET)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


# --- what people see ------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_redis")
def test_local_people_need_no_directory_and_others_are_told(
    directory: Slapd, settings: Any, alice: User, client: Client
) -> None:
    settings.DIRECTORY = directory.settings(servers=(AWAY,))
    assert client.post(LOGIN, {"login": alice.email, "password": PASSWORD}).status_code == 302
    errors = set()
    for login in ("dora", "nobody", alice.email):
        page = Client().post(LOGIN, {"login": login, "password": "wrong"})
        assert page.status_code == 200
        errors.add(str(page.context["form"].errors))
    assert len(errors) == 1, "nothing tells who has an account"
    assert "does not answer" in errors.pop()


@pytest.mark.django_db
@pytest.mark.usefixtures("clean_redis")
@pytest.mark.urls("tests.webapp.urls")
def test_programs_are_told_to_come_again(directory: Slapd, settings: Any, client: Client) -> None:
    settings.DIRECTORY = directory.settings(servers=(AWAY,))
    body = {"email": "dora", "password": SECRET}
    answer = client.post("/api/auth/token", body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "directory_unavailable")
    assert answer.headers["Retry-After"] == str(settings.DIRECTORY.timeout_s)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_redis")
async def test_a_directory_that_hangs_holds_neither_the_loop_nor_a_connection(
    directory: Slapd,
    silent: LdapServer,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.DIRECTORY = directory.settings(servers=(silent,), timeout_s=1)
    held: list[bool] = []
    connect = asked._connect

    def looking(*args: Any) -> Any:
        held.append(connection.connection is not None)
        return connect(*args)

    monkeypatch.setattr(asked, "_connect", looking)
    client = AsyncClient()
    body = {"login": "dora", "password": SECRET}
    signing_in = asyncio.create_task(client.post(LOGIN, body))
    longest_s, before_s = 0.0, time.monotonic()
    while not signing_in.done():
        await asyncio.sleep(0.01)
        longest_s = max(longest_s, time.monotonic() - before_s)
        before_s = time.monotonic()
    assert "does not answer" in signing_in.result().content.decode()
    assert longest_s < 0.6
    assert held == [False]
