"""Whoever has come within a chore is answered between two of its layers, and changes nothing in it."""

from array import array
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import torch

from inference import Caller
from inference.encode_messages import Encoded, EncodeRequest, EncoderInput
from inference.encoder_loader import load_encoder
from inference.encoder_loop import EncoderLoop
from inference.messages import Reply, StepFrame
from tests.inference.tiny_models import make_encoder

NUM_LAYERS = 5
CHORES = [EncoderInput(array("i", range(3 + n, 43 + n))) for n in range(3)]
QUESTION = [EncoderInput(array("i", (9, 8, 7)))]


def request(name: str, inputs: list[EncoderInput], priority: Any) -> EncodeRequest:
    return EncodeRequest(name, tuple(inputs), None, Caller(name, 1.0, priority))


@pytest.fixture(params=["bert", "qwen3"])
def loop(request: pytest.FixtureRequest, tmp_path: Path) -> EncoderLoop:
    settings = {"pooling": "lasttoken"} if request.param == "qwen3" else {"pooling": "mean"}
    path = make_encoder(
        tmp_path / "tiny", model_type=request.param, num_hidden_layers=NUM_LAYERS, **settings
    )
    encoder, _ = load_encoder("tiny", path, lambda phase, fraction: None, torch.float32)
    return EncoderLoop(encoder, max_waiting_tokens=10_000)


def told(frames: list[StepFrame]) -> dict[str, Reply]:
    return {name: update for frame in frames for name, update in frame.updates}


def assert_same(found: dict[str, Reply], expected: dict[str, Reply]) -> None:
    """Up to what batches of other sizes round differently."""
    assert found.keys() == expected.keys()
    for name, update in expected.items():
        other = found[name]
        assert isinstance(update, Encoded)
        assert isinstance(other, Encoded)
        assert other.values.tolist() == pytest.approx(update.values.tolist(), abs=1e-5)


def run(loop: EncoderLoop) -> list[StepFrame]:
    frames = []
    while not loop.is_idle:
        frames += list(loop.step())
    return frames


def test_a_question_does_not_wait_for_the_end_of_a_chore(loop: EncoderLoop) -> None:
    loop.submit(request("chore", CHORES, "background"))
    expected = told(run(loop))["chore"]
    loop.submit(request("question", QUESTION, "interactive"))
    alone = told(run(loop))["question"]

    num_looks = 0
    early: list[StepFrame] = []

    def listen(wait_s: float) -> None:
        nonlocal num_looks
        num_looks += 1
        if num_looks == 2:
            loop.submit(request("question", QUESTION, "interactive"))

    loop.interrupt_by(listen, early.append)
    loop.submit(request("chore", CHORES, "background"))
    late = run(loop)
    assert num_looks >= NUM_LAYERS
    assert_same(told(early), {"question": alone})
    assert_same(told(late), {"chore": expected})
    loop.check()
    # What it took is nobody else's time.
    assert sum(frame.stats.num_encoded_tokens for frame in early + late) == 3 + 3 * 40
    assert all(0 <= frame.stats.forward_ms <= frame.stats.step_ms for frame in early + late)


def test_questions_are_not_interrupted_and_chores_wait_for_chores(loop: EncoderLoop) -> None:
    def listen(wait_s: float) -> None:
        loop.submit(request("other", CHORES, "background"))
        loop.interrupt_by(lambda wait_s: None, early.append)

    early: list[StepFrame] = []
    loop.interrupt_by(lambda _: pytest.fail("a question is computed in one go"), early.append)
    loop.submit(request("question", QUESTION, "interactive"))
    run(loop)
    loop.interrupt_by(listen, early.append)
    loop.submit(request("chore", CHORES, "background"))
    assert set(told(run(loop))) == {"chore", "other"}
    assert not early


def test_a_chore_stands_still_for_answers_of_other_models_but_goes_on(loop: EncoderLoop) -> None:
    waits: list[float] = []

    def listen(wait_s: float) -> None:
        """Somebody asks all the time."""
        waits.append(wait_s)
        sleep(wait_s)
        loop.give_way(0.03)

    loop.interrupt_by(listen, lambda frame: None)
    loop.submit(request("chore", CHORES, "background"))
    began_s = monotonic()
    assert set(told(run(loop))) == {"chore"}
    took_s, rested_s = monotonic() - began_s, sum(waits)
    assert 0 < max(waits) <= 0.03
    assert rested_s <= took_s / 2 + 0.03, "half of the time is for chores"


def test_a_chore_that_is_given_up_in_its_midst_leaves_nothing(loop: EncoderLoop) -> None:
    loop.interrupt_by(lambda wait_s: loop.abort("chore"), lambda frame: None)
    loop.submit(request("chore", CHORES, "background"))
    assert told(run(loop)) == {}
    loop.check()
