"""/v1/audio with OpenAI's own client, unmodified, by models on other servers; and what raw callers may
do wrong."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import openai
import pytest
from openai.types.audio import TranscriptionVerbose

from tests.chat.api_caller import Caller
from tests.openai_description import check, needs_description
from tests.sites import Site, SiteMaker, email_of
from tests.sounds import wav
from tests.upstream_server import Asked, UpstreamServer, status

SAID = "The cat sits on the mat."
SEGMENT = {
    "id": 0, "seek": 0, "start": 0.0, "end": 1.5, "text": f" {SAID}", "tokens": [1, 2, 3],
    "temperature": 0.0, "avg_logprob": -0.2, "compression_ratio": 1.1, "no_speech_prob": 0.01,
}  # fmt: skip
LONG = {
    "task": "transcribe", "language": "english", "duration": 2.0, "text": SAID,
    "segments": [SEGMENT, {**SEGMENT, "id": 1, "start": 1.5, "end": 3661.25, "text": " --> Yes."}],
    "words": [{"word": "The", "start": 0.0, "end": 0.2}],
}  # fmt: skip


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    models = f"ear={server.url}?kind=transcription&key=FAR_KEY#whisper-1,far={server.url}"
    models += (
        f",weak={server.url}?kind=transcription&key=FAR_KEY,full={server.url}?kind=transcription"
    )
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far", FAR_KEY="sk-far") as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    return site.developers_key()


@pytest.fixture
def client(site: Site, key: str, server: UpstreamServer) -> Iterator[openai.OpenAI]:
    server.answers = [status(200, {"text": SAID})]
    server.asked.clear()
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        yield client


def fields_of(asked: Asked) -> dict[str, list[str]]:
    """The fields of a form, its file as its name."""
    boundary = asked.header("content-type").partition("boundary=")[2].encode()
    found: dict[str, list[str]] = {}
    for part in asked.raw.split(b"--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        names = re.findall(rb'name="([^"]+)"', head)  # of the file, its own as well
        text = (names[1] if len(names) > 1 else value.removesuffix(b"\r\n")).decode()
        found.setdefault(names[0].decode(), []).append(text)
    return found


def post(site: Site, key: str, sound: bytes | None = wav(), path: str = "transcriptions",
         **fields: Any) -> httpx2.Response:  # fmt: skip
    files = {"file": ("speech.wav", sound, "audio/wav")} if sound is not None else None
    headers = {"Authorization": f"Bearer {key}"}
    data = {"model": "ear", **fields}
    url = f"{site.url}/v1/audio/{path}"
    return httpx2.post(url, data=data, files=files, headers=headers, timeout=60)


def test_what_is_said_comes_back_as_text(client: openai.OpenAI, server: UpstreamServer) -> None:
    sound = wav(2.0)
    found = client.audio.transcriptions.create(model="ear", file=("späť.wav", sound), language="de")
    assert found.text == SAID
    usage: Any = found.usage
    assert (usage.type, usage.input_tokens) == ("tokens", 100)  # two seconds
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens > 100
    (asked,) = server.asked
    assert asked.path == "/v1/audio/transcriptions"
    assert asked.header("authorization") == "Bearer sk-far"
    assert sound in asked.raw
    assert fields_of(asked) | {"file": []} == {
        "model": ["whisper-1"], "response_format": ["json"], "language": ["de"], "file": [],
    }  # fmt: skip


def test_all_formats_are_made_of_the_same_answer(
    client: openai.OpenAI, server: UpstreamServer
) -> None:
    server.answers = [status(200, LONG)]
    ask: Any = client.audio.transcriptions.create
    found = ask(model="ear", file=("a.wav", wav()), response_format="verbose_json",
                timestamp_granularities=["word", "segment"], temperature=0.5, prompt="Cats")  # fmt: skip
    assert isinstance(found, TranscriptionVerbose)
    assert found.segments is not None
    assert found.words is not None
    assert (found.text, found.duration, found.language) == (SAID, 2.0, "english")
    assert found.segments[0].tokens == [1, 2, 3]
    assert found.words[0].word == "The"
    given = fields_of(server.asked[0])
    assert given["timestamp_granularities[]"] == ["segment", "word"]
    assert (given["temperature"], given["prompt"]) == (["0.5"], ["Cats"])
    assert ask(model="ear", file=("a.wav", wav()), response_format="text") == f"{SAID}\n"
    srt = ask(model="ear", file=("a.wav", wav()), response_format="srt")
    assert srt == (
        f"1\n00:00:00,000 --> 00:00:01,500\n{SAID}\n\n2\n00:00:01,500 --> 01:01:01,250\n-> Yes.\n\n"
    )
    vtt = ask(model="ear", file=("a.wav", wav()), response_format="vtt")
    assert vtt.startswith(f"WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n{SAID}\n\n")


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # as the client says of it
def test_a_translation_is_asked_of_its_own_address(
    client: openai.OpenAI, server: UpstreamServer
) -> None:
    found = client.audio.translations.create(model="ear", file=("a.wav", wav()))
    assert found.text == SAID
    assert server.asked[0].path == "/v1/audio/translations"


@needs_description
def test_answers_are_as_published(site: Site, key: str, server: UpstreamServer) -> None:
    server.answers = [status(200, LONG)]
    check(post(site, key).json(), "CreateTranscriptionResponseJson")
    long = {"response_format": "verbose_json"}
    check(post(site, key, **long).json(), "CreateTranscriptionResponseVerboseJson")
    found = post(site, key, path="translations", **long).json()
    check(found, "CreateTranslationResponseVerboseJson")
    assert (found["task"], found["language"]) == ("translate", "english")


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"model": "gpt-9"}, "model_not_found", "model"),
        ({"model": "far"}, "wrong_model_kind", "model"),
        ({"language": "German!"}, "invalid_value", "language"),
        ({"response_format": "diarized_json"}, "invalid_value", "response_format"),
        ({"temperature": "1.5"}, "invalid_value", "temperature"),
        ({"temperature": "nan"}, "invalid_value", "temperature"),
        ({"timestamp_granularities[]": "word"}, "invalid_value", "timestamp_granularities"),
        ({"timestamp_granularities[]": "day"}, "invalid_value", "timestamp_granularities.0"),
        ({"stream": "true"}, "invalid_value", "stream"),
        ({"include[]": "logprobs"}, "invalid_value", "include"),
        ({"keywords[]": "cat"}, "invalid_value", "keywords"),
        ({"speed": "2"}, "invalid_value", "speed"),
        ({"sound": b""}, "empty_file", "file"),
    ],
)
def test_what_is_wrong_is_named(
    site: Site, key: str, server: UpstreamServer, fields: dict[str, Any], code: str, param: str
) -> None:
    response = post(site, key, **fields)
    assert response.status_code == (404 if code == "model_not_found" else 400), response.text
    error = response.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
    assert not server.asked


def test_what_is_no_form_or_too_large_is_refused(site: Site, key: str) -> None:
    response = Caller(site, key).post("/audio/transcriptions", {"model": "ear"})
    assert response.status_code == 415
    response = post(site, key, bytes(25 * 2**20 + 1))
    assert response.status_code == 413
    assert response.json()["error"]["param"] == "file"


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (status(400, {"error": {"message": "Invalid file format."}}), 400, "invalid_request"),
        (status(200, {"no": "text"}), 502, "upstream_error"),
        (status(200, ["text"]), 502, "upstream_error"),
        (status(200, {"text": "x", "segments": [{"text": 5}]}), 502, "upstream_error"),
        (status(401, {"error": {"message": "bad key sk-far"}}), 502, "upstream_error"),
    ],
)
def test_what_goes_wrong_there_is_told(
    site: Site, key: str, server: UpstreamServer, answer: Any, code: int, told: str
) -> None:
    server.answers = [answer]
    response = post(site, key, model="weak")
    assert response.status_code == code, response.text
    assert response.json()["error"]["code"] == told
    assert "sk-far" not in response.text


def test_it_is_asked_again_where_that_helps(site: Site, key: str, server: UpstreamServer) -> None:
    server.answers = [status(500), status(200, {"text": SAID})]
    assert post(site, key).json()["text"] == SAID


def test_each_second_is_in_the_ledger(site: Site, server: UpstreamServer) -> None:
    server.answers = [status(200, {"text": SAID})]
    site.sign_up("spender").close()
    secret = site.create_api_key(email_of("spender"))
    assert post(site, secret, wav(3.0)).status_code == 200
    with site.connection() as connection:
        (row,) = connection.execute(
            "SELECT model, num_requests, prompt_tokens, completion_tokens FROM chat_usage"
            " JOIN webapp_user ON webapp_user.id = owner_id WHERE email = %s",
            [email_of("spender")],
        ).fetchall()
    assert row[:3] == ("ear", 1, 150)
    assert row[3] > 3
    server.answers = [status(200, {"text": SAID, "usage": {"input_tokens": 7, "output_tokens": 5}})]
    assert post(site, secret).json()["usage"]["total_tokens"] == 12


def test_a_budget_that_is_spent_stops_it(site: Site, server: UpstreamServer) -> None:
    server.answers = [status(200, {"text": SAID})]
    site.sign_up("poor").close()
    secret = site.create_api_key(email_of("poor"))
    site.execute("UPDATE webapp_apikey SET tokens_per_day = 100 WHERE prefix = %s", secret[:11])
    assert post(site, secret, wav(3.0)).status_code == 200
    server.asked.clear()
    response = post(site, secret)
    assert response.status_code == 429
    assert not server.asked


def test_a_key_needs_the_scope_and_the_model(site: Site, server: UpstreamServer) -> None:
    server.answers = [status(200, {"text": SAID})]
    site.sign_up("charlie").close()
    chat_only = site.create_api_key(email_of("charlie"), "chat")
    assert post(site, chat_only).status_code == 403
    other = site.create_api_key(email_of("charlie"))
    site.execute("UPDATE webapp_apikey SET model_names = '{far}' WHERE prefix = %s", other[:11])
    assert post(site, other).json()["error"]["code"] == "model_not_found"
    assert post(site, "vt_nothing").status_code == 401
    with closing(site.sign_in(email_of("charlie"))) as browser:
        token = re.search(r'"csrf": "([^"]+)"', browser.get("/").text)
        assert token is not None
        headers = {"X-CSRFToken": token[1], "Content-Type": "audio/wav"}
        files = {"file": ("a.wav", wav())}
        form = {"X-CSRFToken": token[1]}
        refused = browser.post(
            "/v1/audio/transcriptions", data={"model": "ear"}, files=files, headers=form
        )
        assert refused.json()["error"]["code"] == "api_key_required"
        said = browser.post("/api/transcriptions", content=wav(), headers=headers)
        assert said.json() == {"text": SAID, "language": "", "duration_s": 1.0}
        assert browser.post("/api/transcriptions", content=wav()).status_code == 403
        empty = browser.post("/api/transcriptions", content=b"", headers=headers)
        assert empty.status_code == 400
        large = browser.post("/api/transcriptions", content=bytes(26 * 2**20), headers=headers)
        assert large.status_code == 413
        wrong = browser.post("/api/transcriptions?model=far", content=wav(), headers=headers)
        assert wrong.json()["error"]["code"] == "wrong_model_kind"
        site.execute("UPDATE webapp_tier SET model_names = '{far}'")
        try:
            assert 'data-dictation="here"' not in browser.get("/").text
            gone = browser.post("/api/transcriptions", content=wav(), headers=headers)
            assert gone.status_code == 404
        finally:
            site.execute("UPDATE webapp_tier SET model_names = '{*}'")
        assert 'data-dictation="here"' in browser.get("/").text


def test_it_is_a_model_of_its_own_kind(client: openai.OpenAI, site: Site, key: str) -> None:
    kinds = {model.id: model.to_dict()["kind"] for model in client.models.list()}
    assert (kinds["ear"], kinds["far"]) == ("transcription", "chat")
    body = {"model": "ear", "messages": [{"role": "user", "content": "Hi"}]}
    response = Caller(site, key).post("/chat/completions", json.dumps(body))
    assert response.json()["error"]["code"] == "wrong_model_kind"


@pytest.mark.parametrize(
    ("model", "answer", "code", "told"),
    [
        ("weak", status(500, {"error": "sk-far"}), 503, "upstream_unavailable"),
        ("full", status(429, Retry_After="7"), 429, "upstream_busy"),
    ],
)
def test_who_is_away_or_full_says_when_to_come_back(
    site: Site, key: str, server: UpstreamServer, model: str, answer: Any, code: int, told: str
) -> None:
    server.answers = [answer]
    response = post(site, key, model=model)
    assert (response.status_code, response.json()["error"]["code"]) == (code, told)
    assert int(response.headers["retry-after"]) > 0
    assert "sk-far" not in response.text
