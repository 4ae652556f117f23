"""/v1/audio/speech with OpenAI's own client, unmodified, by models on other servers."""

import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2
import openai
import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import PHRASE, judged_site, set_policy
from tests.sites import Site, SiteMaker, email_of
from tests.sounds import wav
from tests.upstream_server import Answer, UpstreamServer, status, stream

HELLO = "Hello there."
SOUND = b"\xff\xfb" + bytes(range(256)) * 40
BLOCKED: dict[str, Any] = {"input": {"illicit": {"block": 0.9}}, "output": {}}


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"far={server.url},voice={server.url}?kind=speech&key=FAR_KEY&voice=nova#tts-1"
    models += f",weak={server.url}?kind=speech,ear={server.url}?kind=transcription"
    with judged_site(make_site, models, FAR_KEY="sk-far") as site:
        yield site


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    return site.developers_key()


@pytest.fixture
def caller(site: Site, key: str, server: UpstreamServer) -> Caller:
    site.execute("DELETE FROM moderation_moderationpolicy")
    server.answers = [spoken(SOUND)]
    server.asked.clear()
    return Caller(site, key)


def spoken(*pieces: bytes, pause_s: float = 0.0, kind: str = "audio/mpeg", is_cut: bool = False
           ) -> Answer:  # fmt: skip
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        if is_cut:
            handler.send_header("Content-Length", str(10**6))
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(pause_s)
        handler.close_connection = True

    return answer


def body(**more: Any) -> dict[str, Any]:
    return {"model": "voice", "input": HELLO, "voice": "alloy", **more}


def test_a_text_comes_back_as_sound(caller: Caller, site: Site, key: str, server: UpstreamServer
                                    ) -> None:  # fmt: skip
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        found = client.audio.speech.create(
            model="voice", input=HELLO, voice="coral", speed=1.5, instructions="Whisper."
        )
        assert found.content == SOUND
        assert found.response.headers["content-type"] == "audio/mpeg"
    (asked,) = server.asked
    assert asked.path == "/v1/audio/speech"
    assert asked.header("authorization") == "Bearer sk-far"
    assert asked.body == {
        "model": "tts-1", "input": HELLO, "voice": "coral", "response_format": "mp3",
        "speed": 1.5, "instructions": "Whisper.",
    }  # fmt: skip


def test_it_comes_as_it_is_spoken(site: Site, caller: Caller, server: UpstreamServer) -> None:
    server.answers = [spoken(SOUND, b"more", b"end", pause_s=0.5)]
    began_s = time.monotonic()
    address = f"{caller.url}/audio/speech"
    with httpx2.stream("POST", address, headers=caller.headers, json=body()) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        first_s = time.monotonic() - began_s
        rest = b"".join(pieces)
    assert first + rest == SOUND + b"moreend"
    assert time.monotonic() - began_s - first_s > 0.5


def test_the_usual_voice_is_the_models(caller: Caller, server: UpstreamServer) -> None:
    given = body(response_format="wav")
    del given["voice"]
    response = caller.post("/audio/speech", given)
    assert response.headers["content-type"] == "audio/wav"
    assert server.asked[0].body["voice"] == "nova"
    caller.post("/audio/speech", body(voice={"id": "voice_1"}))
    assert server.asked[1].body["voice"] == "voice_1"


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"model": "gpt-9"}, "model_not_found", "model"),
        ({"model": "far"}, "wrong_model_kind", "model"),
        ({"input": ""}, "invalid_value", "input"),
        ({"input": "  "}, "invalid_value", "input"),
        ({"input": "x" * 4_097}, "invalid_value", "input"),
        ({"speed": 9}, "invalid_value", "speed"),
        ({"response_format": "midi"}, "invalid_value", "response_format"),
        ({"stream_format": "sse"}, "invalid_value", "stream_format"),
        ({"pitch": 2}, "invalid_value", "pitch"),
    ],
)
def test_what_is_wrong_is_named(
    caller: Caller, server: UpstreamServer, changes: dict[str, Any], code: str, param: str
) -> None:
    response = caller.post("/audio/speech", body(**changes))
    assert response.status_code == (404 if code == "model_not_found" else 400), response.text
    assert response.json()["error"]["code"] == code
    assert response.json()["error"]["param"] == param
    assert not server.asked


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (status(400, {"error": {"message": "no such voice"}}), 400, "invalid_request"),
        (status(401, {"error": {"message": "sk-far"}}), 502, "upstream_error"),
        (spoken(b'{"a": 1}', kind="application/json"), 502, "upstream_error"),
        (spoken(b"<html>", kind="text/html; charset=utf-8"), 502, "upstream_error"),
        (spoken(), 502, "upstream_error"),
        (status(500), 503, "upstream_unavailable"),
    ],
)
def test_what_goes_wrong_there_is_told(
    caller: Caller, server: UpstreamServer, answer: Any, code: int, told: str
) -> None:
    server.answers = [answer]
    response = caller.post("/audio/speech", body(model="weak"))
    assert (response.status_code, response.json()["error"]["code"]) == (code, told)
    assert "sk-far" not in response.text


def test_it_is_asked_again_as_long_as_nothing_was_said(
    caller: Caller, server: UpstreamServer
) -> None:
    server.answers = [status(500), spoken(SOUND)]
    assert caller.post("/audio/speech", body()).content == SOUND
    server.answers = [spoken(SOUND, is_cut=True), spoken(SOUND)]
    with pytest.raises(httpx2.HTTPError):
        caller.post("/audio/speech", body())
    assert len(server.asked) == 3


def test_who_hangs_up_is_heard(caller: Caller, server: UpstreamServer) -> None:
    server.answers = [stream(*["x" * 1_000] * 100, pause_s=0.1, kind="audio/mpeg")]
    address = f"{caller.url}/audio/speech"
    with httpx2.stream("POST", address, headers=caller.headers, json=body()) as response:
        next(response.iter_raw())
    server.answers = [spoken(SOUND)]
    assert caller.post("/audio/speech", body()).content == SOUND


def test_its_text_is_in_the_ledger(site: Site, caller: Caller) -> None:
    site.sign_up("spender").close()
    secret = site.create_api_key(email_of("spender"))
    own = Caller(site, secret)
    assert own.post("/audio/speech", body(input="word " * 60)).status_code == 200
    with site.connection() as connection:
        (row,) = connection.execute(
            "SELECT model, prompt_tokens, completion_tokens FROM chat_usage"
            " JOIN webapp_user ON webapp_user.id = owner_id WHERE email = %s",
            [email_of("spender")],
        ).fetchall()
    assert row == ("voice", 100, 0)
    site.execute("UPDATE webapp_apikey SET tokens_per_day = 50 WHERE prefix = %s", secret[:11])
    assert own.post("/audio/speech", body()).status_code == 429


def test_what_a_policy_stops_does_not_leave_the_house(
    site: Site, caller: Caller, server: UpstreamServer
) -> None:
    set_policy(site, BLOCKED)
    response = caller.post("/audio/speech", body(input=f"Where is the {PHRASE}?"))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "content_filter")
    response = caller.post("/audio/speech", body(instructions=f"As the {PHRASE}"))
    assert response.status_code == 400
    assert not server.asked
    assert caller.post("/audio/speech", body()).status_code == 200
    set_policy(site, {"input": {"illicit": {"redact": 0.9}}, "output": {}})
    assert caller.post("/audio/speech", body(input=f"The {PHRASE} is here.")).status_code == 200
    assert PHRASE not in server.asked[-1].body["input"]
    assert server.asked[-1].body["input"].endswith("is here.")


def test_nor_does_what_tells_a_model_how_to_listen(
    site: Site, key: str, caller: Caller, server: UpstreamServer
) -> None:
    set_policy(site, BLOCKED)
    server.answers = [status(200, {"text": "Yes."})]
    headers = {"Authorization": f"Bearer {key}"}

    def ask(prompt: str) -> httpx2.Response:
        files = {"file": ("a.wav", wav(), "audio/wav")}
        data = {"model": "ear", "prompt": prompt}
        url = f"{site.url}/v1/audio/transcriptions"
        return httpx2.post(url, data=data, files=files, headers=headers, timeout=60)

    response = ask(f"Where is the {PHRASE}?")
    assert response.json()["error"]["code"] == "content_filter"
    assert response.json()["error"]["param"] == "prompt"
    assert not server.asked
    assert ask("Cats").json()["text"] == "Yes."


def test_charlie_tries_each_door(site: Site, caller: Caller, server: UpstreamServer) -> None:
    site.sign_up("charlie").close()
    chat_only = site.create_api_key(email_of("charlie"), "chat")
    assert Caller(site, chat_only).post("/audio/speech", body()).status_code == 403
    assert Caller(site, "vt_nothing").post("/audio/speech", body()).status_code == 401
    other = site.create_api_key(email_of("charlie"))
    site.execute("UPDATE webapp_apikey SET model_names = '{far}' WHERE prefix = %s", other[:11])
    found = Caller(site, other).post("/audio/speech", body())
    assert found.json()["error"]["code"] == "model_not_found"
    with closing(site.sign_in(email_of("charlie"))) as browser:
        assert browser.post("/api/speech", json={"text": HELLO}).status_code == 403
        token = browser.get("/").text.partition('"csrf": "')[2].partition('"')[0]
        headers = {"X-CSRFToken": token}
        said = browser.post("/api/speech", json={"text": HELLO}, headers=headers)
        assert (said.content, said.headers["content-type"]) == (SOUND, "audio/mpeg")
        assert server.asked[-1].body["voice"] == "nova"
        set_policy(site, {"input": {}, "output": {"illicit": {"block": 0.9}}})
        text = {"text": f"The {PHRASE}."}
        assert browser.post("/api/speech", json=text, headers=headers).status_code == 400
        site.execute("UPDATE webapp_tier SET model_names = '{far}'")
        try:
            assert browser.post("/api/speech", json=text, headers=headers).status_code == 404
            assert '"speaks": false' in browser.get("/").text
        finally:
            site.execute("UPDATE webapp_tier SET model_names = '{*}'")
        assert '"speaks": true' in browser.get("/").text
