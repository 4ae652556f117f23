"""/v1/audio by a Whisper of our own engine: a real site, a real worker, OpenAI's client."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tests.chat.conftest import chat_environment
from tests.inference.hearing_reference import noise
from tests.inference.tiny_models import make_whisper
from tests.openai_description import check, needs_description
from tests.sites import Site, SiteMaker
from tests.sounds import wav

SOUND = wav(data=noise(3.0))
LONG = wav(data=noise(50.0, seed=1))


@pytest.fixture(scope="module")
def site(
    make_site: SiteMaker, small_models: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    whisper = make_whisper(tmp_path_factory.mktemp("models") / "ear")
    # Where no ffmpeg is installed.
    tools = tmp_path_factory.mktemp("bin")
    paths = [path for path in os.environ["PATH"].split(":") if not Path(path, "ffmpeg").exists()]
    environment = chat_environment(f"{small_models},ear={whisper}") | {"VITRINE_PRELOAD": "false"}
    with make_site(**environment, PATH=":".join([str(tools), *paths])) as site:
        site.set_up().close()
        yield site


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    return site.developers_key()


@pytest.fixture(scope="module")
def client(site: Site, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        yield client


def post(site: Site, key: str, sound: bytes, **fields: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"}
    files = {"file": ("speech.wav", sound, "audio/wav")}
    url = f"{site.url}/v1/audio/transcriptions"
    return httpx2.post(
        url, data={"model": "ear", **fields}, files=files, headers=headers, timeout=60
    )


def test_what_is_said_comes_back_as_text(client: openai.OpenAI) -> None:
    first = client.audio.transcriptions.create(model="ear", file=("a.wav", SOUND), language="de")
    again = client.audio.transcriptions.create(model="ear", file=("a.wav", SOUND), language="de")
    assert first == again
    usage: Any = first.usage
    assert usage.input_tokens == 150
    assert usage.output_tokens > 0
    kinds = {model.id: model.to_dict()["kind"] for model in client.models.list()}
    assert kinds["ear"] == "transcription"


@needs_description
def test_long_sound_has_times(site: Site, key: str) -> None:
    found = post(site, key, LONG, response_format="verbose_json").json()
    check(found, "CreateTranscriptionResponseVerboseJson")
    assert found["duration"] == 50.0
    assert found["language"] in ("en", "de", "ar")
    starts = [segment["seek"] for segment in found["segments"]]
    assert starts == sorted(starts)
    assert starts[-1] > 0, "a second window"
    srt = post(site, key, LONG, response_format="srt").text
    assert srt.count(" --> ") == len(found["segments"])
    translated = post(site, key, SOUND, response_format="text", prompt="Cats")
    assert translated.status_code == 200


@pytest.mark.parametrize(
    ("sound", "fields", "status", "code", "param"),
    [
        (SOUND, {"language": "xx"}, 400, "invalid_parameter", "language"),
        (
            SOUND,
            {"response_format": "verbose_json", "timestamp_granularities[]": "word"},
            400,
            "invalid_parameter",
            "timestamp_granularities",
        ),
        (SOUND[:2000], {}, 400, "invalid_audio", "file"),
        (wav(0.01), {}, 400, "invalid_audio", "file"),
        (b"nothing that sounds", {}, 415, "unsupported_audio", "file"),
        (b"OggS" + bytes(1000), {}, 415, "unsupported_audio", "file"),
        (wav(rate_hz=1_000, data=bytes(24 * 2**20)), {}, 413, "audio_too_long", "file"),
    ],
)
def test_what_cannot_be_heard_is_told(
    site: Site,
    key: str,
    sound: bytes,
    fields: dict[str, str],
    status: int,
    code: str,
    param: str,
) -> None:
    response = post(site, key, sound, **fields)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert (error["code"], error["param"]) == (code, param)


def test_nothing_of_it_is_kept(site: Site, key: str) -> None:
    post(site, key, SOUND)
    files = [path for path in site.data_dir.rglob("*") if path.is_file()]
    assert not [path for path in files if SOUND[44:10_000] in path.read_bytes()[:10_000]]
