"""Answers that a program asks for under /api: begun, followed, stopped, tried again."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.chat.reader import text_of
from tests.sites import Site, email_of

Value = dict[str, Any]


class Program:
    """A program of Alice's with a key."""

    def __init__(self, http: httpx2.Client) -> None:
        self.http = http

    def post(self, path: str, **body: Any) -> httpx2.Response:
        return self.http.post(f"/api/{path}", json=body)

    def begun(self, path: str = "messages", **body: Any) -> Value:
        response = self.post(path, **body)
        assert response.status_code == 201, response.text
        found: Value = response.json()
        return found

    def events(self, run: str, after: int = 0) -> list[tuple[str, int, Value]]:
        """(event, seq, data), until the run ends."""
        found = []
        response = self.http.get(f"/api/runs/{run}/events", params={"after": after})
        for block in response.text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line)
            if fields:
                data = json.loads(fields["data"])
                found.append((fields["event"], int(fields.get("id", 0)), data))
        return found

    def ended(self, run: str) -> Value:
        """The answer, once it is whole."""
        self.events(run)
        found: Value = self.run(run)["answer"]
        return found

    def hear(self, run: str, chars: int = 20) -> None:
        """Until so much of the text has come."""
        seen = []
        with self.http.stream("GET", f"/api/runs/{run}/events") as response:
            for line in _lines(response):
                if line.startswith(b"data: ") and "kind" in (data := json.loads(line[6:])):
                    seen.append(data)
                    if len(text_of(seen)) >= chars:
                        return
        raise AssertionError("it ended before")

    def run(self, run: str) -> Value:
        found: Value = self.http.get(f"/api/runs/{run}").json()
        return found


def _lines(response: httpx2.Response) -> Iterator[bytes]:
    """As events are written. The client's own lines end at whatever Python takes for an end, and a
    model of random weights writes such characters."""
    rest = b""
    for piece in response.iter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


@pytest.fixture
def program(chat_site: Site, key: str) -> Iterator[Program]:
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=chat_site.url, headers=headers, timeout=60) as http:
        yield Program(http)


@pytest.fixture
def stranger(chat_site: Site, strangers_key: str) -> Iterator[Program]:
    headers = {"Authorization": f"Bearer {strangers_key}"}
    with httpx2.Client(base_url=chat_site.url, headers=headers, timeout=60) as http:
        yield Program(http)


def test_a_conversation_by_rest(program: Program) -> None:
    """What a chat is in the browser: begun, answered, gone on with, read again."""
    first = program.begun(text="One", model="short")
    answer = program.ended(first["run"])
    assert answer["status"] == "complete"
    assert answer["text"]
    conversation = first["conversation"]["id"]
    second = program.begun(
        text="Two", conversation=conversation, parent=answer["id"], model="short"
    )
    assert second["conversation"]["id"] == conversation
    assert second["message"]["parent"] == answer["id"]
    ended = program.ended(second["run"])
    whole = program.http.get(f"/api/conversations/{conversation}").json()
    assert [message["id"] for message in whole["messages"]] == [
        first["message"]["id"], answer["id"], second["message"]["id"], ended["id"],
    ]  # fmt: skip


def test_a_run_is_followed_from_anywhere_and_told_of(program: Program) -> None:
    run = program.begun(text="Tell me", model="short")["run"]
    numbered = [seq for event, seq, _ in program.events(run) if event == "run.event"]
    told = program.run(run)
    assert (told["id"], told["status"], told["answer"]["status"]) == (run, "finished", "complete")
    if numbered:  # it may have ended, and its log been folded, before the first look
        assert numbered == list(range(numbered[0], numbered[0] + len(numbered)))


def test_stop_ends_an_endless_answer_and_keeps_what_was_read(program: Program) -> None:
    begun = program.begun(text="Go on for ever", model="endless")
    run = begun["run"]
    program.hear(run)
    assert program.post(f"runs/{run}/stop", chars=5).status_code == 202
    ended = program.ended(run)
    assert ended["finish_reason"] == "stopped"
    assert len(ended["text"]) == 5
    assert program.post(f"runs/{run}/stop").status_code == 202, "once more"
    assert program.run(run)["answer"]["text"] == ended["text"]


def test_another_answer_and_the_rest_of_a_stopped_one(program: Program) -> None:
    begun = program.begun(text="Go on for ever", model="endless")
    program.hear(begun["run"])
    program.post(f"runs/{begun['run']}/stop")
    stopped = program.ended(begun["run"])
    again = program.begun(f"messages/{stopped['id']}/regenerate", model="short", wish="shorter")
    assert program.ended(again["run"])["parent"] == begun["message"]["id"]
    rest = program.begun(f"messages/{stopped['id']}/continue")
    program.hear(rest["run"], len(stopped["text"]) + 1)
    program.post(f"runs/{rest['run']}/stop")
    assert program.ended(rest["run"])["text"].startswith(stopped["text"])


def test_the_same_client_id_is_one_message_however_often_it_comes(program: Program) -> None:
    client_id = str(uuid4())
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(
                lambda _: program.begun(text="Once", model="short", client_id=client_id), "8" * 8
            )
        )
    assert len({one["run"] for one in found}) == 1
    assert len({one["message"]["id"] for one in found}) == 1
    program.ended(found[0]["run"])
    others = [program.begun(text="Twice", model="short") for _ in range(2)]
    assert len({one["run"] for one in others}) == 2
    for other in others:
        program.ended(other["run"])


def test_models_side_by_side(program: Program) -> None:
    begun = program.begun(text="Both", model="short", beside=["short"])
    assert len(begun["answers"]) == 2
    assert {answer["parent"] for answer in begun["answers"]} == {begun["message"]["id"]}
    for answer in begun["answers"]:
        program.ended(answer["run"])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": " "}, 400, "bad_frame"),
        ({"text": "\0"}, 400, "bad_frame"),
        ({"text": "x" * 300_000}, 400, "bad_frame"),
        ({}, 400, "invalid_value"),
        ({"text": "Hi", "model": "nothing"}, 404, "model_not_found"),
        ({"text": "Hi", "conversation": str(uuid4())}, 404, "not_found"),
        ({"text": "Hi", "client_id": ""}, 400, "bad_frame"),
        ({"text": "Hi", "system_prompt": "x" * 30_000}, 400, "bad_frame"),
        ({"text": "Hi", "beside": ["short"] * 9}, 400, "invalid_value"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_saved(
    program: Program, body: Value, status: int, code: str
) -> None:
    def kept() -> list[str]:
        """By ids: the title of another test's chat may come meanwhile."""
        return [one["id"] for one in program.http.get("/api/conversations").json()["items"]]

    before = kept()
    response = program.post("messages", **body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert kept() == before


def test_charlie_finds_nothing(program: Program, stranger: Program) -> None:
    begun = program.begun(text="The canary sings", model="endless")
    program.hear(begun["run"])
    run, answer = begun["run"], begun["answer"]["id"]
    doors = [
        stranger.http.get(f"/api/runs/{run}"),
        stranger.http.get(f"/api/runs/{run}/events"),
        stranger.post(f"runs/{run}/stop"),
        stranger.post(f"runs/{run}/calls/call_1", allow=True),
        stranger.post(f"messages/{answer}/regenerate"),
        stranger.post(f"messages/{answer}/continue"),
        stranger.post("messages", text="Hi", conversation=begun["conversation"]["id"]),
        stranger.post("messages", text="Hi", conversation=str(uuid4())),
    ]
    assert {door.status_code for door in doors} == {404}
    assert program.run(run)["status"] == "decode"
    program.post(f"runs/{run}/stop")
    program.ended(run)


def test_a_key_without_the_scope_asks_for_nothing(chat_site: Site, program: Program) -> None:
    key = chat_site.create_api_key(email_of("developer"), "chat", "api:read")
    headers = {"Authorization": f"Bearer {key}"}
    run = program.begun(text="Hi", model="short")["run"]
    with httpx2.Client(base_url=chat_site.url, headers=headers, timeout=60) as http:
        assert http.post("/api/messages", json={"text": "Hi"}).status_code == 403
        assert http.post(f"/api/runs/{run}/stop", json={}).status_code == 403
        assert http.get(f"/api/runs/{run}").status_code == 200
