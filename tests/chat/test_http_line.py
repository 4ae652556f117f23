"""The chat socket over plain HTTP: the same frames, rights and ends, for networks without WebSockets."""

import json
from collections.abc import Iterator
from contextlib import closing
from secrets import token_hex
from typing import Any

import httpx2
import pytest

from tests.chat.line_reader import LineReader
from tests.chat.reader import Reader, assert_gapless
from tests.chat.test_external_servers import database_url, redis_url
from tests.sites import Site, SiteMaker, wait_until

__all__ = ["database_url", "redis_url"]


@pytest.fixture(scope="module")
def site(vitrine_server: Site) -> Site:
    """One with the built-in model."""
    vitrine_server.set_up().close()
    return vitrine_server


@pytest.fixture
def tab(site: Site) -> Iterator[LineReader]:
    reader = LineReader.signed_up(site, "alice-line")
    with closing(reader.client):
        reader.client.get("/")
        with reader:
            yield reader


def test_an_answer_comes_whole_and_is_saved_as_it_was_shown(tab: LineReader) -> None:
    tab.hear_until(type="hello")
    accepted = tab.send("What is 17 * 23?")
    assert tab.hear_end(accepted["run"])["kind"] == "finished"
    assert_gapless(tab.numbered(accepted["run"]))
    assert "391" in tab.text(accepted["run"])
    assert tab.saved(accepted)["text"] == tab.text(accepted["run"])


def test_a_lost_line_goes_on_behind_the_last_seq(tab: LineReader) -> None:
    accepted = tab.send("Write a poem about the sea.")
    tab.hear_events(accepted["run"], 3)
    tab.close()
    tab.open()
    tab.follow(accepted["run"], after=len(tab.numbered(accepted["run"])))
    tab.hear_end(accepted["run"])
    assert_gapless(tab.numbered(accepted["run"]))
    assert tab.saved(accepted)["text"] == tab.text(accepted["run"])


def test_a_socket_and_a_line_see_the_same_and_either_stops(site: Site, tab: LineReader) -> None:
    accepted = tab.send("Write a poem about the sea.")
    with Reader(site, tab.client) as other:
        other.follow(accepted["run"])
        tab.hear_events(accepted["run"], 2)
        tab.say({"type": "run.stop", "run": accepted["run"], "chars": None})
        ends = [each.hear_end(accepted["run"])["kind"] for each in (tab, other)]
    assert ends[0] == ends[1]
    assert tab.text(accepted["run"]) == other.text(accepted["run"])


def test_a_page_of_another_origin_brings_nothing(tab: LineReader) -> None:
    frame = json.dumps({"type": "message.send", "client_id": "evil", "text": "Hello"})
    for origin in ("http://evil.example", "null", ""):
        assert tab.post([frame], Origin=origin).status_code == 403
    tab.say({"type": "ping"})
    tab.hear_until(type="pong")
    assert not [f for f in tab.frames if f.get("client_id") == "evil"]


def test_nobody_brings_and_hears_nothing(site: Site) -> None:
    with closing(site.visitor()) as visitor:
        path = f"/line/{token_hex(16)}"
        response = visitor.post(path, content='["{}"]', headers={"Origin": site.url})
        assert response.status_code == 401
        heard = visitor.get(path)
    assert "4401" in heard.text
    assert 'data: {"type"' not in heard.text


def test_charlie_reaches_nobodys_line(site: Site, tab: LineReader) -> None:
    charlie = LineReader.signed_up(site, "charlie-line")
    with closing(charlie.client):
        charlie.line = tab.line
        frame = json.dumps({"type": "ping"})
        assert charlie.post([frame]).status_code == 202, "he cannot tell whether it is there"
    accepted = tab.send("Hello")
    tab.hear_end(accepted["run"])
    assert "pong" not in {frame["type"] for frame in tab.frames}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400),
        ("{", 400),
        ("{}", 400),
        ("[1]", 400),
        (r'["\ud800"]', 400),
        (json.dumps(["x"] * 201), 400),
        ("[" * 100_000, 400),
        (json.dumps(["x" * 2**20]), 413),
    ],
)
def test_what_is_no_list_of_frames_is_refused_and_the_line_lives(
    tab: LineReader, body: str, status: int
) -> None:
    response = tab.post(body)
    assert response.status_code == status
    assert response.json()["error"]["message"]
    tab.say("no JSON")
    assert tab.hear_until(type="error")["code"] == "bad_frame"
    tab.say({"type": "ping"})
    tab.hear_until(type="pong")


@pytest.mark.parametrize("path", ["/line/", "/line/short", "/line/" + "a" * 65, "/line/a/../b" * 3])
def test_an_address_that_is_no_line_is_a_404(tab: LineReader, path: str) -> None:
    assert tab.client.get(path).status_code == 404


def test_other_methods_are_refused(site: Site, tab: LineReader) -> None:
    response = tab.client.put(tab.line, headers={"Origin": site.url})
    assert response.status_code == 405


def test_a_line_ends_with_its_session(site: Site, tab: LineReader) -> None:
    tab.hear_until(type="hello")
    site.execute("UPDATE webapp_user SET is_active = false WHERE email = %s", tab.email)
    frame: dict[str, Any] = {}
    while frame.get("type") != "closed":
        frame = tab.hear(timeout_s=30)
    assert frame["code"] == 4401


def test_lines_that_are_left_are_forgotten(site: Site, tab: LineReader) -> None:
    """A user has 64 sockets and lines at most: more than that come and go."""
    for _ in range(80):
        tab.close()
        tab.open()
    tab.say({"type": "ping"})
    wait_until(lambda: tab.hear()["type"] == "pong", what="the last line")


def test_of_two_processes_either_takes_the_frames(
    make_site: SiteMaker, redis_url: str, database_url: str
) -> None:
    shared = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "SECRET_KEY": "shared" * 10}
    with make_site(**shared) as one:
        one.set_up().close()
        with make_site(**shared) as other:
            reader = LineReader.signed_up(one, "alice-both")
            with closing(reader.client), reader:
                reader.hear_until(type="hello")
                response = httpx2.post(
                    f"{other.url}{reader.line}",
                    content=json.dumps([json.dumps({"type": "ping"})]),
                    headers={"Origin": other.url},
                    cookies=reader.client.cookies,
                )
                assert response.status_code == 202, response.text
                reader.hear_until(type="pong")
