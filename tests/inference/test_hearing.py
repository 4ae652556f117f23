"""Speech to text by a Whisper of our own in real worker processes, window after window."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import pytest_asyncio

from inference import (
    BadSound,
    Caller,
    Engine,
    EngineError,
    InvalidParameter,
    Sound,
    SoundTooLong,
    Transcript,
    TranscriptionRequest,
    WrongKind,
)
from inference.hearing import MAX_S, Hearing, split
from inference.hearing_layout import read_hearing_layout
from inference.hearing_messages import Heard, HearRequest
from tests.inference.conftest import engine_config
from tests.inference.hearing_reference import Reference, noise
from tests.inference.tiny_models import make_whisper
from tests.sounds import wav

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("models") / "ear")


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("models") / "english", is_multilingual=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(whisper: Path, english: Path, tiny_model: Path) -> AsyncIterator[Engine]:
    config = engine_config(tiny_model, max_restarts_per_minute=100)
    entries = (f"tiny={tiny_model}", f"ear={whisper}", f"english={english}")
    running = Engine(replace(config, extra_models=entries))
    yield running
    await running.close()


def _file(tmp_path: Path, content: bytes) -> Sound:
    path = tmp_path / "sound.wav"
    path.write_bytes(content)
    return Sound(path, "sound.wav", "audio/wav")


async def test_long_sound_is_heard_window_by_window(
    engine: Engine, whisper: Path, tmp_path: Path
) -> None:
    samples = noise(70.0)
    sound = _file(tmp_path, wav(data=samples))
    found = await engine.transcribe(TranscriptionRequest("ear", sound, has_segments=True))
    reference = Reference(whisper)
    wanted = [
        list(piece.ids)
        for ids in reference.windows(samples, task="transcribe", language=found.language)
        for piece in split(ids, reference.first_time_id, 30.0)[0]
        if piece.ids
    ]
    assert [list(segment.token_ids) for segment in found.segments] == wanted
    assert found.duration_s == 70.0
    assert found.usage.prompt_tokens == 3_500
    assert found.usage.completion_tokens >= sum(map(len, wanted))
    assert found.language in ("en", "de", "ar")
    starts = [segment.seek_s for segment in found.segments]
    assert starts == sorted(starts)
    assert max(segment.end_s for segment in found.segments) <= 70.0
    assert found.text == "".join(segment.text for segment in found.segments).strip()


async def test_an_english_model_takes_no_other_language(engine: Engine, tmp_path: Path) -> None:
    sound = _file(tmp_path, wav(data=noise(2.0)))
    request = TranscriptionRequest("english", sound)
    assert (await engine.transcribe(replace(request, language="en"))).language == "en"
    for wrong, param in (
        (replace(request, language="de"), "language"),
        (replace(request, task="translate"), "model"),
        (replace(request, has_words=True), "timestamp_granularities"),
        (replace(request, model="ear", language="xx"), "language"),
    ):
        with pytest.raises(InvalidParameter) as caught:
            await engine.transcribe(wrong)
        assert caught.value.param == param


async def test_only_such_models_hear(engine: Engine, tmp_path: Path) -> None:
    sound = _file(tmp_path, wav())
    with pytest.raises(WrongKind):
        await engine.transcribe(TranscriptionRequest("tiny", sound))
    with pytest.raises(WrongKind):
        await engine.tokenizer("ear")
    assert [state.spec.name for state in engine.models("transcription")] == ["ear", "english"]


async def test_a_worker_that_dies_costs_a_pause(engine: Engine, tmp_path: Path) -> None:
    sound = _file(tmp_path, wav(data=noise(65.0, seed=3)))
    request = TranscriptionRequest("ear", sound, has_segments=True)
    undisturbed = await engine.transcribe(request)
    task = asyncio.create_task(engine.transcribe(request))
    await asyncio.sleep(0.15)
    (pid,) = engine.worker_pids("ear")
    os.kill(pid, signal.SIGKILL)
    assert await task == undisturbed


async def test_many_at_once_are_each_heard(engine: Engine, tmp_path: Path) -> None:
    def request(number: int) -> TranscriptionRequest:
        path = tmp_path / f"{number}.wav"
        path.write_bytes(wav(data=noise(1.0, seed=number)))
        sound, caller = Sound(path, path.name), Caller(str(number))
        return TranscriptionRequest("ear", sound, has_segments=True, caller=caller)

    requests = [request(number) for number in range(6)]
    alone = [await engine.transcribe(one) for one in requests]
    together = await asyncio.gather(*map(engine.transcribe, requests))
    assert alone == together
    assert len({found.segments for found in alone}) > 1


async def test_what_cannot_be_heard_is_told(engine: Engine, tmp_path: Path) -> None:
    silent = np.full(16_000, np.nan, np.float32).tobytes()
    for content, code in (
        (wav(0.05), "invalid_audio"),
        (wav(told_bytes=10**6), "invalid_audio"),
        (wav(data=silent, bits=32, coding=3), "invalid_audio"),
        (b"not a sound at all", "unsupported_audio"),
        (b"", "unsupported_audio"),
    ):
        with pytest.raises(BadSound) as caught:
            await engine.transcribe(TranscriptionRequest("ear", _file(tmp_path, content)))
        assert (caught.value.code, caught.value.param) == (code, "file")


async def test_hours_are_too_long(whisper: Path, tmp_path: Path) -> None:
    """A file may be sparse: four hours of zeros, of which hardly anything is heard."""
    num_heard = 0

    async def send(request: HearRequest) -> Heard:
        nonlocal num_heard
        num_heard += 1
        return Heard((50,), None, 0.0, 0.0)

    path = tmp_path / "long.wav"
    path.write_bytes(wav(0.1, told_bytes=4 * 3600 * 32_000))
    with path.open("r+b") as file:
        file.truncate(44 + 4 * 3600 * 32_000)
    hearing = Hearing.load(whisper, send)
    with pytest.raises(SoundTooLong):
        await hearing.transcribe(TranscriptionRequest("ear", Sound(path, "long.wav")))
    assert num_heard == 0, "its head says how long it is"
    with path.open("r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff\xff\xff")
        file.truncate(44 + (MAX_S + 60) * 32_000)
    with pytest.raises(SoundTooLong):
        await hearing.transcribe(TranscriptionRequest("ear", Sound(path, "long.wav")))


async def test_times_that_stand_still_end(whisper: Path, tmp_path: Path) -> None:
    first = read_hearing_layout(whisper).first_time_id

    async def send(request: HearRequest) -> Heard:
        return Heard((first, 50, first, first, 51), None, 0.0, 0.0)

    sound = _file(tmp_path, wav(data=noise(40.0)))
    request = TranscriptionRequest("ear", sound, has_segments=True)
    found: Transcript = await Hearing.load(whisper, send).transcribe(request)
    assert len(found.segments) == 2


async def test_a_broken_model_says_so(whisper: Path, tmp_path: Path) -> None:
    broken = copytree(whisper, tmp_path / "broken")
    (broken / "generation_config.json").unlink()
    engine = Engine(replace(engine_config(broken), extra_models=(f"ear={broken}",)))
    try:
        with pytest.raises(EngineError, match="generation_config"):
            await engine.transcribe(TranscriptionRequest("ear", _file(tmp_path, wav())))
    finally:
        await engine.close()
