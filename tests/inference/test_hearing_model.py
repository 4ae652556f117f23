"""Whisper in its worker: its tokens are those of transformers' own `generate`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inference import Caller, GenerateRequest, ModelRefused, SamplingParams
from inference.hearing import split
from inference.hearing_layout import read_hearing_layout
from inference.hearing_loop import HearingLoop
from inference.hearing_messages import WINDOW_SAMPLES, Heard, HearRequest
from inference.hearing_model import HearingModel, load_hearing
from inference.kinds import read_kind
from inference.messages import Failed
from tests.inference.hearing_reference import Reference, noise, segments_of_transformers
from tests.inference.tiny_models import make_whisper

FIRST_TIME = 1_000  # a token, in the test of `split`


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("models") / "ear")


@pytest.fixture(scope="module")
def model(whisper: Path) -> HearingModel:
    return load_hearing("ear", whisper, lambda *_: None, torch.float32)[0]


@pytest.mark.parametrize("has_times", [False, True])
@pytest.mark.parametrize("seconds", [0.3, 5.0, 30.0])
def test_the_tokens_are_those_of_transformers(
    model: HearingModel, whisper: Path, seconds: float, has_times: bool
) -> None:
    samples = noise(seconds, seed=round(seconds))
    task_id = model.layout.tasks["transcribe"]
    heard = model.hear(HearRequest("a", samples, None, task_id, has_times=has_times))
    reference = Reference(whisper)
    wanted = reference.ids(samples, has_times=has_times, task="transcribe")
    assert list(heard.ids) == wanted
    assert heard.avg_logprob < 0
    assert 0 < heard.no_speech < 1


def test_language_task_and_prompt_are_read_in_front(model: HearingModel, whisper: Path) -> None:
    samples, layout, reference = noise(3.0), model.layout, Reference(whisper)
    language_id, task_id = layout.languages["ar"], layout.tasks["translate"]
    by_language = model.hear(HearRequest("a", samples, language_id, task_id))
    assert by_language.language_id == language_id
    settings = {"task": "translate", "language": "ar", "has_times": False}
    assert list(by_language.ids) == reference.ids(samples, **settings)
    prompt = (layout.first_time_id - 3, 40, 41, 42)
    prompted = model.hear(HearRequest("a", samples, language_id, task_id, prompt_ids=prompt))
    wanted = reference.ids(samples, prompt_ids=torch.tensor(prompt), **settings)
    assert list(prompted.ids) == wanted
    assert prompted.ids != by_language.ids


def test_what_a_worker_must_not_read_is_refused(model: HearingModel) -> None:
    loop = HearingLoop(model, max_waiting_tokens=4_000)
    task_id = model.layout.tasks["transcribe"]
    good = HearRequest("good", noise(0.2), None, task_id)
    for wrong in (
        replace(good, request_id="a", samples=b""),
        replace(good, request_id="a", samples=b"xyz"),
        replace(good, request_id="a", samples=bytes(2 * WINDOW_SAMPLES + 2)),
        replace(good, request_id="a", language_id=10**9),
        replace(good, request_id="a", task_id=None),
        replace(good, request_id="a", prompt_ids=(10**9,)),
        replace(good, request_id="a", prompt_ids=(1,) * 1000),
        GenerateRequest("a", "ear", (1,), SamplingParams(max_tokens=1)),
    ):
        loop.submit(wrong)
        (frame,) = loop.step()
        ((request_id, update),) = frame.updates
        assert request_id == "a"
        assert isinstance(update, Failed)
        assert update.code == "invalid_request"
    loop.canary()
    assert loop.is_idle


def test_the_queue_is_bounded_and_fair(model: HearingModel) -> None:
    loop = HearingLoop(model, max_waiting_tokens=4_500)
    task_id = model.layout.tasks["transcribe"]

    def request(name: str, user: str, **more: Any) -> HearRequest:
        return HearRequest(name, noise(0.2), None, task_id, caller=Caller(user), **more)

    for name in ("a1", "a2", "a3"):
        loop.submit(request(name, "alice"))
    loop.submit(request("b1", "bob"))  # no room
    loop.submit(request("b2", "bob", is_replay=True))  # it had been accepted
    loop.submit(replace(request("c1", "carol"), caller=Caller("carol", priority="background")))
    loop.abort("a3")
    ended: list[tuple[str, Any]] = []
    while not loop.is_idle:
        for frame in loop.step():
            ended += frame.updates
    assert [name for name, _ in ended] == ["b1", "c1", "a1", "b2", "a2"]
    assert [type(update) for _, update in ended] == [Failed, Failed, Heard, Heard, Heard]
    assert ended[0][1].code == "overloaded"
    loop.check()


def test_an_abort_is_heard_within_a_window(model: HearingModel) -> None:
    loop = HearingLoop(model, max_waiting_tokens=10_000)
    num_listened = 0

    def listen(_: float) -> None:
        nonlocal num_listened
        num_listened += 1
        if num_listened == 3:
            loop.abort("a")

    loop.interrupt_by(listen, lambda frame: None)
    loop.submit(HearRequest("a", noise(1.0), None, model.layout.tasks["transcribe"]))
    assert [frame.updates for frame in loop.step()] == [()]
    assert num_listened == 3
    assert loop.is_idle


@given(st.lists(st.integers(FIRST_TIME - 3, FIRST_TIME + 1_500), min_size=1, max_size=12))
def test_pieces_and_steps_are_those_of_transformers(ids: list[int]) -> None:
    pieces, next_s = split(ids, FIRST_TIME, 30.0)
    segments, offset = segments_of_transformers(ids, FIRST_TIME, 3_000)
    assert round(next_s * 100) == offset
    assert len(pieces) == len(segments)
    for piece, segment in zip(pieces, segments, strict=True):
        words = [one for one in segment["tokens"].tolist() if one < FIRST_TIME]
        assert list(piece.ids) == words
        if ids[0] >= FIRST_TIME:  # else a piece would begin before its window
            assert piece.start_s == pytest.approx(float(segment["start"]))
            assert piece.end_s == pytest.approx(float(segment["end"]))


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def broken(whisper: Path, tmp_path: Path) -> Path:
    path = tmp_path / "broken"
    path.mkdir()
    for file in whisper.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    return path


def test_its_files_tell_its_kind(whisper: Path) -> None:
    assert read_kind(whisper) == "transcription"
    layout = read_hearing_layout(whisper)
    assert sorted(layout.languages) == ["ar", "de", "en"]
    assert sorted(layout.tasks) == ["transcribe", "translate"]


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("generation_config.json", None, "generation_config.json is missing"),
        ("generation_config.json", "{}", "no_timestamps_token_id"),
        ("generation_config.json", '{"no_timestamps_token_id": 5}', "lang_to_id"),
        ("preprocessor_config.json", None, "preprocessor_config.json"),
        ("preprocessor_config.json", '{"chunk_length": 10}', "30 seconds"),
        ("tokenizer.json", None, "tokenizer.json"),
        ("config.json", '{"model_type": "moonshine"}', "Whisper"),
    ],
)
def test_files_that_lack_something_are_refused(
    broken: Path, file: str, content: str | None, word: str
) -> None:
    (broken / file).unlink() if content is None else (broken / file).write_text(content)
    with pytest.raises(ModelRefused, match=word):
        load_hearing("broken", broken, lambda *_: None, torch.float32)
