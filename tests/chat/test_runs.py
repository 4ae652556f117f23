"""Answers over a real socket: streamed, saved as shown, followed by several tabs, stopped."""

import time
from random import Random
from typing import Any

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed

from tests.chat.reader import Frame, Reader, assert_gapless, text_of


def test_an_answer_streams_and_is_saved_as_it_was_shown(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Hello there")
    assert accepted["message"]["text"] == "Hello there"
    assert accepted["answer"]["status"] == "running"
    assert accepted["conversation"]["title"] == "Hello there"
    run = accepted["run"]
    end = alices_tab.hear_end(run)
    assert end["kind"] == "finished"
    assert end["usage"]["completion_tokens"] > 100
    assert end["timings"]["ttft_ms"] > 0
    numbered = alices_tab.numbered(run)
    assert_gapless(numbered)
    assert len(numbered) > 5, "it came in pieces"
    saved = alices_tab.saved(accepted)
    assert saved["status"] == "complete"
    assert saved["text"] == alices_tab.text(run) != ""
    assert saved["parts"] == [{"type": "text", "text": saved["text"]}]
    assert saved["run"] is None


def test_the_phases_are_told_before_the_text(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Tell me")
    alices_tab.hear_end(accepted["run"])
    phases = [f["phase"]["phase"] for f in alices_tab.frames if f["type"] == "run.phase"]
    assert "decode" in phases
    assert sorted(set(phases), key=phases.index) == [
        p for p in ("loading", "queued", "prefill", "decode") if p in phases
    ]


def test_a_reload_in_the_middle_loses_and_repeats_nothing(alices_tab: Reader) -> None:
    accepted = alices_tab.send("A long one, please")
    run = accepted["run"]
    alices_tab.hear_events(run, 4)
    seen = list(alices_tab.numbered(run))
    alices_tab.close()
    time.sleep(0.3)
    reloaded = alices_tab.another_tab().open()
    # A reload renders what is stored, sees a running answer there, and follows it.
    stored = reloaded.saved(accepted)
    assert (stored["status"], stored["run"]) == ("running", run)
    reloaded.follow(run)
    reloaded.hear_end(run)
    assert reloaded.numbered(run)[: len(seen)] == seen
    assert_gapless(reloaded.numbered(run))
    assert reloaded.saved(accepted)["text"] == reloaded.text(run)
    reloaded.close()


def test_a_lost_connection_goes_on_behind_the_last_seq(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Another long one")
    run = accepted["run"]
    alices_tab.hear_events(run, 5)
    last = alices_tab.numbered(run)[-1][0]
    alices_tab.close()
    alices_tab.open()
    alices_tab.follow(run, after=last)
    alices_tab.hear_end(run)
    assert_gapless(alices_tab.numbered(run))
    assert alices_tab.text(run) == alices_tab.saved(accepted)["text"]


def test_two_tabs_see_the_same(alices_tab: Reader) -> None:
    with alices_tab.another_tab() as other:
        accepted = alices_tab.send("For both")
        run = accepted["run"]
        news = other.hear_until(type="conversation.changed")
        assert news["running"] == [run]
        other.follow(run)
        alices_tab.hear_end(run)
        other.hear_end(run)
        assert other.numbered(run) == alices_tab.numbered(run)


@pytest.mark.parametrize("seed", range(3))
def test_readers_who_come_and_go_all_see_what_is_saved(alices_tab: Reader, seed: int) -> None:
    """Lines break, and events are asked for again from anywhere: none is missing, none differs."""
    numbers = Random(seed)
    accepted = alices_tab.send("For many, and long")
    run = accepted["run"]
    tabs = [alices_tab, alices_tab.another_tab().open(), alices_tab.another_tab().open()]
    seen: list[dict[int, Frame]] = [{} for _ in tabs]

    def note(number: int) -> None:
        for seq, event in tabs[number].numbered(run):
            assert seen[number].setdefault(seq, event) == event, "a repeated event is the same"
        assert sorted(seen[number]) == list(range(1, len(seen[number]) + 1)), "none is left out"

    for _ in range(25):
        number = numbers.randrange(len(tabs))
        tab = tabs[number]
        if numbers.random() < 0.5:
            tab.close()
            tab.open()
        tab.follow(run, after=numbers.randrange(max(1, len(seen[number]))))
        tab.hear_until(type="run.event", run=run)
        note(number)
    for number, tab in enumerate(tabs):
        tab.follow(run, after=max(0, len(seen[number]) - 1))
        tab.hear_end(run)
        note(number)
    saved = alices_tab.saved(accepted)["text"]
    assert [text_of([each[seq] for seq in sorted(each)]) for each in seen] == [saved] * len(tabs)
    for tab in tabs[1:]:
        tab.close()


def test_stop_ends_the_text_where_the_reader_saw_it_end(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Do not stop")
    run = accepted["run"]
    alices_tab.hear_events(run, 4)
    chars = len(alices_tab.text(run))
    started = time.monotonic()
    alices_tab.say({"type": "run.stop", "run": run, "chars": chars})
    alices_tab.hear_until(type="run.stopping", run=run)
    end = alices_tab.hear_end(run)
    assert time.monotonic() - started < 5
    assert (end["kind"], end["chars"]) == ("stopped", chars)
    assert end["usage"]["completion_tokens"] > 0
    saved = alices_tab.saved(accepted)
    assert saved["status"] == "stopped"
    assert saved["text"] == alices_tab.text(run)
    assert len(saved["text"]) == chars


def test_stop_twice_and_after_the_end_does_no_harm(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Stop me twice")
    run = accepted["run"]
    alices_tab.hear_text(run, 1)
    for _ in range(2):
        alices_tab.say({"type": "run.stop", "run": run, "chars": None})
    alices_tab.hear_end(run)
    alices_tab.say({"type": "run.stop", "run": run, "chars": 0})
    alices_tab.say({"type": "ping"})
    alices_tab.hear_until(type="pong")
    assert len([e for e in alices_tab.events(run) if e["kind"] == "stopped"]) == 1
    assert alices_tab.saved(accepted)["text"] == alices_tab.text(run) != ""


def test_the_same_send_twice_makes_one_message_and_one_run(alices_tab: Reader) -> None:
    frame = {"type": "message.send", "client_id": "twice", "text": "Only once"}
    alices_tab.say(frame)
    alices_tab.say(frame)
    first = alices_tab.hear_until(type="message.accepted")
    second = alices_tab.hear_until(type="message.accepted")
    assert first["run"] == second["run"]
    assert first["message"]["id"] == second["message"]["id"]
    alices_tab.say({"type": "run.stop", "run": first["run"], "chars": None})
    alices_tab.hear_end(first["run"])
    messages = alices_tab.conversation(first["conversation"]["id"])["messages"]
    assert len(messages) == 2


def test_a_conversation_goes_on(alices_tab: Reader) -> None:
    first = alices_tab.send("One", model="short")
    alices_tab.hear_end(first["run"])
    second = alices_tab.send(
        "Two",
        model="short",
        conversation=first["conversation"]["id"],
        parent=first["answer"]["id"],
    )
    alices_tab.hear_end(second["run"])
    assert second["conversation"]["id"] == first["conversation"]["id"]
    messages = alices_tab.conversation(first["conversation"]["id"])["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant"]
    assert [m["parent"] for m in messages] == [None, *(m["id"] for m in messages[:3])]


def test_the_tier_limits_how_many_answers_are_written_at_once(alices_tab: Reader) -> None:
    accepted = [alices_tab.send(f"Number {i}") for i in range(2)]
    alices_tab.say({"type": "message.send", "client_id": "third", "text": "One too many"})
    error = alices_tab.hear_until(type="error")
    assert (error["code"], error["client_id"]) == ("too_many_runs", "third")
    assert error["retry_after_s"] > 0
    for frame in accepted:
        alices_tab.say({"type": "run.stop", "run": frame["run"], "chars": None})
        alices_tab.hear_end(frame["run"])
    again = alices_tab.send("One too many", client_id="third")
    alices_tab.say({"type": "run.stop", "run": again["run"], "chars": None})
    alices_tab.hear_end(again["run"])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"text": "   "}, "bad_frame"),
        ({"text": "x" * 200_001}, "bad_frame"),
        ({"text": "a\x00b"}, "bad_frame"),
        ({"model": "gpt-9"}, "model_not_found"),
        ({"parent": "00000000-0000-4000-8000-000000000000"}, "not_found"),
        ({"conversation": "00000000-0000-4000-8000-000000000000"}, "not_found"),
    ],
)
def test_a_refused_message_is_answered_and_saves_nothing(
    alices_tab: Reader, fields: dict[str, str], code: str
) -> None:
    frame = {"type": "message.send", "client_id": "bad", "text": "hi", **fields}
    alices_tab.say(frame)
    error = alices_tab.hear_until(type="error")
    assert (error["code"], error["client_id"]) == (code, "bad")
    assert error["message"]
    assert alices_tab.client.get("/api/conversations").json()["items"] == []


@pytest.mark.parametrize("raw", ["{", "[]", '{"type": 3}', "x" * 300_000, '{"type": "run.follow"}'])
def test_a_frame_that_is_not_understood_leaves_the_socket_open(
    alices_tab: Reader, raw: str
) -> None:
    alices_tab.say(raw)
    error = alices_tab.hear_until(type="error")
    assert error["code"] in ("bad_frame", "not_found")
    alices_tab.say({"type": "ping"})
    alices_tab.hear_until(type="pong")


def test_a_message_beyond_a_mebibyte_is_closed_with_its_reason(alices_tab: Reader) -> None:
    alices_tab.say("x" * (2**20 + 1))
    with pytest.raises(ConnectionClosed) as caught:
        alices_tab.hear_until(type="error")
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009


@pytest.mark.parametrize("title", ["a\x00b", "a\ud800b", "", " ", "x" * 201])
def test_a_title_that_cannot_be_kept_is_refused(alices_tab: Reader, title: str) -> None:
    accepted = alices_tab.send("Hello", model="short")
    alices_tab.hear_end(accepted["run"])
    path = f"/api/conversations/{accepted['conversation']['id']}"
    response = alices_tab.change("PATCH", path, title=title)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["message"]


def test_a_binary_frame_leaves_the_socket_open(alices_tab: Reader) -> None:
    assert alices_tab.socket is not None
    alices_tab.socket.send(b"\x00\xff")
    assert alices_tab.hear_until(type="error")["code"] == "bad_frame"


def test_the_events_come_over_sse_as_well(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Over HTTP")
    run = accepted["run"]
    alices_tab.hear_end(run)
    with alices_tab.client.stream("GET", f"/api/runs/{run}/events?after=2") as response:
        assert response.headers["content-type"] == "text/event-stream"
        ids = [int(line[4:]) for line in response.iter_lines() if line.startswith("id: ")]
    assert ids == [seq for seq, _ in alices_tab.numbered(run) if seq > 2]


def test_a_chat_is_deleted_while_its_answer_is_written(
    alices_tab: Reader, database: psycopg.Connection[Any]
) -> None:
    num_active = (
        "SELECT count(*) FROM chat_generation WHERE conversation_id = %s AND status <> 'stopped'"
    )
    for _ in range(3):
        accepted = alices_tab.send("Delete me meanwhile")
        alices_tab.hear_events(accepted["run"], 5)
        chat = accepted["conversation"]["id"]
        path = f"/api/conversations/{chat}"
        response = alices_tab.change("DELETE", path)
        assert response.status_code == 204, response.text
        assert alices_tab.client.get(path).status_code == 404
        until_s = time.monotonic() + 5
        while database.execute(num_active, [chat]).fetchone() != (0,):
            assert time.monotonic() < until_s, "the answer has not ended"
            time.sleep(0.05)


def test_a_made_up_cursor_is_a_400(alices_tab: Reader) -> None:
    response = alices_tab.client.get("/api/conversations?cursor=made-up")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "bad_cursor"


def test_a_socket_speaks_the_language_of_its_page(alices_tab: Reader) -> None:
    alices_tab.close()
    alices_tab.client.cookies.set("vitrine_language", "de")
    alices_tab.open()
    alices_tab.say({"type": "message.send", "client_id": "leer", "text": "  "})
    error = alices_tab.hear_until(type="error")
    assert (error["code"], error["message"]) == ("bad_frame", "Die Nachricht ist leer.")
