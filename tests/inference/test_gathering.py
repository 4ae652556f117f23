"""Frames that are gathered say the same as those that were made, and nothing urgent is held."""

import queue
import random
from dataclasses import replace
from time import monotonic

import pytest

from inference import worker
from inference.gathering import CALM_S, MOST_ON_GPU_S, MOST_PATIENT_S, MOST_S, Gathering
from inference.messages import (
    EngineStats,
    Finished,
    FromWorker,
    GenerateRequest,
    Loading,
    Prefill,
    Reply,
    SamplingParams,
    StepFrame,
    Timings,
    TokenLogprob,
    Tokens,
    Usage,
)

GATHER_S = 0.03
PATIENCE_S = 0.08
END = Finished("stop", Usage(1, 0, 1), Timings())


def tokens(number: int) -> Tokens:
    return Tokens(f"t{number} ", (number,), number, 5.0)


def frame(*updates: tuple[str, Reply], num_running: int = 1) -> StepFrame:
    return StepFrame(updates, EngineStats(num_running=num_running))


def begun(*streams: str, patient: tuple[str, ...] = ()) -> Gathering:
    """Of these streams the first token has been sent, at time 0."""
    gathering = Gathering(GATHER_S)
    for stream in patient:
        params = SamplingParams(max_tokens=9)
        request = GenerateRequest(stream, "m", (1,), params, patience_s=PATIENCE_S)
        gathering.expect(request, -9.0)
    gathering.add(frame(*((stream, tokens(0)) for stream in streams)))
    gathering.take(0.0)
    return gathering


def test_tokens_wait_for_each_other() -> None:
    gathering = begun("a")
    assert gathering.due_s is None
    for number in (1, 2, 3):
        gathering.add(frame(("a", tokens(number)), num_running=number))
        assert gathering.due_s == pytest.approx(GATHER_S + 0.001)
    joined = Tokens("t1 t2 t3 ", (1, 2, 3), 3, 5.0)
    assert gathering.take(0.04) == frame(("a", joined), num_running=3)
    assert gathering.due_s is None


def test_tokens_with_probabilities_stay_by_themselves() -> None:
    rated = [replace(tokens(n), logprobs=(TokenLogprob(n, -1.0),)) for n in (1, 2)]
    gathering = begun("a")
    for each in rated:
        gathering.add(frame(("a", each)))
    assert gathering.take(0.04).updates == (("a", rated[0]), ("a", rated[1]))


def test_the_writer_sends_what_is_held_before_it_ends() -> None:
    outbox: queue.SimpleQueue[FromWorker | None] = queue.SimpleQueue()
    ready = Loading("starting", 0.5)
    for value in (frame(("a", tokens(0))), frame(("a", tokens(1))), ready, None):
        outbox.put(value)
    gathering = begun("a")
    sent = list(worker._when_due(outbox, gathering))
    assert sent[-1] == ready
    assert "".join(text for each in sent[:-1] for text in said_by(each)) == "t0 t1 "


def test_the_writer_waits_until_it_is_due() -> None:
    outbox: queue.SimpleQueue[FromWorker | None] = queue.SimpleQueue()
    gathering = Gathering(GATHER_S)
    frames = worker._when_due(outbox, gathering)
    outbox.put(frame(("a", tokens(0))))
    assert next(frames) == frame(("a", tokens(0)))
    begin_s = monotonic()
    for number in (1, 2):
        outbox.put(frame(("a", tokens(number))))
    assert said_by(next(frames)) == ["t1 t2 "]
    assert monotonic() - begin_s >= GATHER_S * 0.9


def said_by(value: FromWorker) -> list[str]:
    assert isinstance(value, StepFrame)
    return [update.text for _, update in value.updates if isinstance(update, Tokens)]


def test_after_a_slow_step_nothing_waits() -> None:
    gathering = begun("a")
    gathering.add(frame(("a", tokens(1))))
    due_s = gathering.due_s
    assert due_s is not None
    assert due_s < 0.2, "the second step ends long after it was due"


def test_it_waits_longer_for_more_streams_but_not_for_ever() -> None:
    gathering = begun(*map(str, range(500)))
    gathering.add(frame(("0", tokens(1))))
    assert gathering.due_s == pytest.approx(MOST_S)
    gathering.most_s = MOST_ON_GPU_S
    assert gathering.due_s == pytest.approx(MOST_ON_GPU_S)


@pytest.mark.parametrize(
    "urgent", [("b", tokens(0)), ("a", END), ("b", Prefill(1, 2))], ids=["first", "end", "progress"]
)
def test_what_somebody_waits_for_goes_at_once(urgent: tuple[str, Reply]) -> None:
    gathering = begun("a")
    gathering.add(frame(("a", tokens(1))))
    gathering.add(frame(urgent))
    assert gathering.due_s == 0.0
    its_own = [("a", tokens(1))] if urgent[0] == "a" else []
    assert gathering.take(0.0).updates == (*its_own, urgent)


def test_what_another_waits_for_brings_no_tokens_along() -> None:
    gathering = begun("a", "b")
    gathering.add(frame(("a", tokens(1)), ("b", tokens(1)), ("c", tokens(0))))
    assert gathering.take(0.01).updates == (("c", tokens(0)),)
    gathering.add(frame(("a", tokens(2)), ("b", END)))
    assert gathering.take(0.02).updates == (("b", tokens(1)), ("b", END))
    assert gathering.due_s == pytest.approx(GATHER_S + 0.002)
    joined = Tokens("t1 t2 ", (1, 2), 2, 5.0)
    assert gathering.take(0.04).updates == (("a", joined),)
    assert gathering.due_s is None


def test_a_patient_reader_is_told_as_often_as_it_asked() -> None:
    gathering = begun("a", "b", patient=("a",))
    gathering.add(frame(("a", tokens(1)), ("b", tokens(1))))
    assert gathering.due_s == pytest.approx(GATHER_S + 0.002)
    assert gathering.take(0.04).updates == (("b", tokens(1)),)
    assert gathering.due_s == pytest.approx(PATIENCE_S)
    assert gathering.take(0.08).updates == (("a", tokens(1)),)


def test_patient_readers_wait_for_those_who_begin_but_not_for_ever() -> None:
    gathering = begun("a", "b", patient=("a",))
    gathering.add(frame(("a", tokens(1)), ("b", tokens(1))))
    begins = GenerateRequest("c", "m", (1,), SamplingParams(max_tokens=9))
    gathering.expect(begins, 0.01)
    assert gathering.due_s == pytest.approx(GATHER_S + 0.002), "programs get theirs as ever"
    assert gathering.take(0.04).updates == (("b", tokens(1)),)
    assert gathering.due_s == pytest.approx(0.01 + CALM_S)
    gathering.expect(begins, 0.19)
    assert gathering.due_s == pytest.approx(MOST_PATIENT_S)
    assert gathering.take(0.2).updates == (("a", tokens(1)),)


def test_many_patient_readers_are_told_less_often_but_not_for_ever() -> None:
    streams = tuple(map(str, range(64)))
    gathering = begun(*streams, patient=streams)
    gathering.add(frame(("0", tokens(1))))
    assert gathering.due_s == pytest.approx(0.128)
    streams = tuple(map(str, range(500)))
    gathering = begun(*streams, patient=streams)
    gathering.add(frame(("0", tokens(1))))
    assert gathering.due_s == pytest.approx(MOST_PATIENT_S)


def test_a_stream_that_comes_again_is_new() -> None:
    gathering = begun("a")
    gathering.add(frame(("a", END)))
    gathering.take(0.0)
    gathering.add(frame(("a", tokens(1))))
    assert gathering.due_s == 0.0


def test_nothing_is_held_where_it_is_switched_off() -> None:
    gathering = Gathering(0.0)
    for number in range(3):
        gathering.add(frame(("a", tokens(number))))
        assert gathering.due_s == 0.0
        assert gathering.take(0.0) == frame(("a", tokens(number)))


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_or_swapped(seed: int) -> None:
    rng = random.Random(seed)
    gathering, now_s = begun(patient=("a", "b")), 0.0
    said: dict[str, list[Reply]] = {}
    heard: dict[str, list[Reply]] = {}

    def take(*, everything: bool = False) -> None:
        for stream, update in gathering.take(now_s, everything=everything).updates:
            heard.setdefault(stream, []).append(update)

    for number in range(300):
        now_s += rng.expovariate(100)
        if gathering.due_s is not None and gathering.due_s <= now_s:
            take()
        updates = []
        for stream in rng.sample("abcd", rng.randint(0, 3)):
            update = tokens(number) if rng.random() < 0.9 else Prefill(number, 999)
            updates.append((stream, update))
            said.setdefault(stream, []).append(update)
        gathering.add(frame(*updates))
    take(everything=True)
    assert gathering.due_s is None
    assert {s: flat(each) for s, each in heard.items()} == {s: flat(e) for s, e in said.items()}


def flat(updates: list[Reply]) -> list[object]:
    """Every token by itself, between what else was said."""
    pieces: list[object] = []
    for update in updates:
        if isinstance(update, Tokens):
            words = [f"{word} " for word in update.text.split()]
            pieces += zip(words, update.ids, strict=True)
        else:
            pieces.append(update)
    return pieces
