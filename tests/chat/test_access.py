"""Alice owns; Charlie tries every door, and nobody gets past the sign-in."""

import re
from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from chat.consumers import CHECK_SESSION_S
from tests.chat.reader import Frame, Reader
from tests.sites import Site, post_form

CANARY = "the canary 7f3a sings"


@pytest.fixture
def charlies_tab(chat_site: Site) -> Iterator[Reader]:
    reader = Reader.signed_up(chat_site, "charlie")
    with closing(reader.client), reader:
        yield reader


@pytest.fixture
def alices(alices_tab: Reader) -> Frame:
    """A finished exchange of Alice's, whose text holds the canary."""
    accepted = alices_tab.send(CANARY, model="short")
    alices_tab.hear_end(accepted["run"])
    return accepted


def _doors(
    conversation: str, run: str, answer: str
) -> list[tuple[str, str, dict[str, object] | None]]:
    return [
        ("GET", f"/c/{conversation}", None),
        ("GET", f"/api/conversations/{conversation}", None),
        ("PATCH", f"/api/conversations/{conversation}", {"title": "mine"}),
        ("DELETE", f"/api/conversations/{conversation}", None),
        ("GET", f"/api/runs/{run}/events", None),
        ("GET", f"/api/messages/{answer}/trace", None),
        ("GET", f"/api/messages/{answer}/tokens", None),
        ("POST", f"/api/messages/{answer}/replay", None),
        (
            "POST",
            f"/api/messages/{answer}/branch",
            {"token": 0, "choice": 300, "client_id": "theirs"},
        ),
    ]


def _try(client: httpx2.Client, door: tuple[str, str, dict[str, object] | None]) -> httpx2.Response:
    method, path, body = door
    headers = {"X-CSRFToken": client.cookies.get("vitrine_csrf") or ""}
    return client.request(method, path, json=body, headers=headers)


def test_another_users_ids_are_as_missing_as_unknown_ones(
    alices_tab: Reader, alices: Frame, charlies_tab: Reader
) -> None:
    charlies_tab.client.get("/")  # a CSRF cookie, so that nothing else is in the way
    theirs = _doors(alices["conversation"]["id"], alices["run"], alices["answer"]["id"])
    unknown = _doors(str(uuid4()), str(uuid4()), str(uuid4()))
    for door, no_door in zip(theirs, unknown, strict=True):
        response, missing = _try(charlies_tab.client, door), _try(charlies_tab.client, no_door)
        assert response.status_code == missing.status_code == 404, door
        assert CANARY not in response.text
        if door[1].startswith("/api"):
            assert response.json() == missing.json()
    assert alices_tab.conversation(alices["conversation"]["id"])["conversation"]["title"]


def test_the_socket_knows_no_strangers_run(alices: Frame, charlies_tab: Reader) -> None:
    for run in (alices["run"], str(uuid4())):
        for frame in (
            {"type": "run.follow", "run": run, "after": 0},
            {"type": "run.stop", "run": run, "chars": 0},
            {"type": "run.decide", "run": run, "call": "call_1", "allow": True},
        ):
            charlies_tab.say(frame)
            error = charlies_tab.hear_until(type="error", run=run)
            assert error["code"] == "not_found"
    texts = [f for f in charlies_tab.frames if CANARY in str(f)]
    assert texts == []


def test_a_running_answer_of_a_stranger_is_out_of_reach(
    alices_tab: Reader, charlies_tab: Reader
) -> None:
    accepted = alices_tab.send("mine alone")
    run = accepted["run"]
    alices_tab.hear_events(run, 2)
    charlies_tab.say({"type": "run.follow", "run": run, "after": 0})
    assert charlies_tab.hear_until(type="error")["code"] == "not_found"
    charlies_tab.say({"type": "run.stop", "run": run, "chars": 0})
    assert charlies_tab.hear_until(type="error")["code"] == "not_found"
    alices_tab.hear_events(run, 4)
    alices_tab.say({"type": "run.stop", "run": run, "chars": None})
    assert alices_tab.hear_end(run)["chars"] > 0


def test_nobody_writes_into_a_strangers_conversation(alices: Frame, charlies_tab: Reader) -> None:
    mine = charlies_tab.send("mine", model="short")
    charlies_tab.hear_end(mine["run"])
    attempts = [
        {"conversation": alices["conversation"]["id"], "parent": alices["answer"]["id"]},
        {"conversation": mine["conversation"]["id"], "parent": alices["answer"]["id"]},
        {"conversation": None, "parent": alices["answer"]["id"]},
    ]
    for number, fields in enumerate(attempts):
        frame = {"type": "message.send", "client_id": f"evil{number}", "text": "hi", **fields}
        charlies_tab.say(frame)
        assert charlies_tab.hear_until(type="error")["code"] == "not_found"


def test_news_of_a_conversation_reach_its_owner_only(
    alices_tab: Reader, charlies_tab: Reader
) -> None:
    accepted = alices_tab.send(CANARY, model="short")
    alices_tab.hear_end(accepted["run"])
    charlies_tab.say({"type": "ping"})
    charlies_tab.hear_until(type="pong")
    assert {f["type"] for f in charlies_tab.frames} <= {"hello", "models.changed", "pong"}


def test_every_door_asks_for_a_sign_in(chat_site: Site, alices: Frame) -> None:
    with chat_site.visitor() as nobody:
        for door in [
            *_doors(alices["conversation"]["id"], alices["run"], alices["answer"]["id"]),
            ("GET", "/", None),
            ("GET", "/settings/", None),
            ("GET", "/api/conversations", None),
            ("GET", "/api/models", None),
            ("POST", "/api/models/load", {"model": "short"}),
            ("GET", "/v1/models", None),
            ("POST", "/v1/chat/completions", {"model": "short", "messages": []}),
        ]:
            response = _try(nobody, door)
            if door[1].startswith(("/api", "/v1")):
                # A cookie-less unsafe call may be stopped by the CSRF check first.
                assert response.status_code in (401, 403), door
                assert set(response.json()["error"]) == {"message", "type", "code", "param"}
            else:
                assert response.status_code == 302, door
                assert response.headers["location"].startswith("/accounts/login/")


def test_a_socket_without_a_session_is_closed(chat_site: Site) -> None:
    url = f"ws://127.0.0.1:{chat_site.port}/ws/chat/"
    with connect(url, origin=chat_site.url) as socket, pytest.raises(ConnectionClosed):  # type: ignore[arg-type]
        socket.recv(timeout=10)
    assert socket.close_code == 4401


def test_a_socket_ends_with_its_session(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "dora")
    with closing(reader.client), reader:
        reader.say({"type": "ping"})
        reader.hear_until(type="pong")
        assert post_form(reader.client, "/accounts/logout/", {}).status_code == 302
        reader.say({"type": "message.send", "client_id": "late", "text": "still here?"})
        with pytest.raises(ConnectionClosed) as caught:
            reader.hear_until(type="message.accepted")
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4401


def test_a_socket_ends_when_an_administrator_ends_the_session(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "dora")
    with closing(reader.client), reader, closing(chat_site.set_up()) as admin:
        reader.hear_until(type="hello")
        page = admin.get("/admin/webapp/signin/", params={"q": reader.email})
        (row,) = re.findall(r"/admin/webapp/signin/(\d+)/change/", page.text)
        form = {"action": "end", "_selected_action": row}
        assert post_form(admin, "/admin/webapp/signin/", form).status_code == 302
        reader.say({"type": "message.send", "client_id": "late", "text": "still here?"})
        with pytest.raises(ConnectionClosed) as caught:
            reader.hear_until(type="message.accepted")
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4401


def test_a_socket_that_only_listens_ends_with_its_session_too(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "dora")
    with closing(reader.client), reader:
        reader.hear_until(type="hello")
        assert post_form(reader.client, "/accounts/logout/", {}).status_code == 302
        with pytest.raises(ConnectionClosed) as caught:
            reader.hear_until(type="never", timeout_s=40)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4401


def test_the_socket_of_a_browser_that_another_one_signs_out_closes(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "dora")
    with closing(reader.client), reader, closing(chat_site.sign_in(reader.email)) as other:
        reader.hear_until(type="hello")
        assert post_form(other, "/settings/sessions", {"others": "yes"}).status_code == 302
        with pytest.raises(ConnectionClosed) as caught:
            reader.hear_until(type="never", timeout_s=CHECK_SESSION_S + 2)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4401


def test_a_suspended_user_writes_nothing_more(chat_site: Site) -> None:
    reader = Reader.signed_up(chat_site, "eve")
    with closing(reader.client), reader:
        suspend = f"User.objects.filter(email={reader.email!r}).update(is_active=False)"
        done = chat_site.manage("shell", "-c", f"from webapp.models import User; {suspend}")
        assert done.returncode == 0, done.stderr
        reader.say({"type": "message.send", "client_id": "late", "text": "still here?"})
        with pytest.raises(ConnectionClosed):
            reader.hear_until(type="message.accepted")


def test_row_level_security_hides_rows_from_any_query(alices: Frame, chat_site: Site) -> None:
    """With the app's own role: nothing without a scope, nothing of others, and no writing either."""
    import psycopg

    from webapp.servers.postgres import Postgres

    tables = (
        "chat_conversation",
        "chat_message",
        "chat_generation",
        "chat_generationevent",
        "chat_generationturn",
    )
    with psycopg.connect(Postgres(chat_site.data_dir).conninfo(), autocommit=True) as connection:

        def count(table: str) -> int:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # type: ignore[arg-type]
            assert row is not None
            return int(row[0])

        def scope(value: str) -> None:
            connection.execute("SELECT set_config('vitrine.scope', %s, false)", [value])

        assert [count(table) for table in tables] == [0] * len(tables)
        scope("user:-1")
        assert [count(table) for table in tables] == [0] * len(tables)
        scope("system")
        assert all(count(table) > 0 for table in tables)
        owner = connection.execute(
            "SELECT owner_id FROM chat_conversation WHERE id = %s", [alices["conversation"]["id"]]
        ).fetchone()
        assert owner is not None
        scope(f"user:{owner[0]}")
        assert count("chat_message") == 2
        scope("user:-1")
        done = connection.execute("UPDATE chat_message SET text = 'gone'")
        assert done.rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO chat_conversation"
                " (id, owner_id, title, title_by_hand, model, system_prompt, version,"
                "  created_at, updated_at)"
                " VALUES (gen_random_uuid(), %s, '', false, '', '', 1, now(), now())",
                [owner[0]],
            )
