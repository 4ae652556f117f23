"""When a worker counts as slow, with made-up steps."""

import random
from collections.abc import Iterator
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.messages import EngineStats
from inference.pace import Pace


def _step(num_tokens: int, kv_tokens: int, slowness: float = 1.0, num_read: int = 0) -> EngineStats:
    """Of a machine whose time for a step grows with its tokens and with what they attend to."""
    calm_ms = 5.0 + 1.0 * (num_tokens + num_read) + 0.01 * kv_tokens
    return EngineStats(
        kv_tokens_used=kv_tokens,
        forward_ms=calm_ms * slowness,
        num_decoded_tokens=num_tokens,
        num_read_tokens=num_read,
        is_reading=num_read > 0,
    )


def _learnt(num_tokens: int = 2, kv_tokens: int = 300) -> Pace:
    pace = Pace()
    for _ in range(40):
        pace.hear(_step(num_tokens, kv_tokens))
    return pace


def _slow_steps(pace: Pace, slowness: float, for_ms: float) -> Iterator[bool]:
    heard_ms = 0.0
    while heard_ms < for_ms:
        step = _step(2, 300, slowness)
        heard_ms += step.forward_ms
        pace.hear(step)
        yield pace.is_slow


def test_a_worker_that_stays_several_times_slower_is_slow_until_it_is_not() -> None:
    pace = _learnt()
    assert not any(_slow_steps(pace, 6, for_ms=5000)), "a burst is no straggler"
    assert list(_slow_steps(pace, 6, for_ms=5000))[-1]
    assert pace.ratio == pytest.approx(6, rel=0.1)
    assert list(_slow_steps(pace, 3, for_ms=10_000))[-1], "hardly better"
    assert not list(_slow_steps(pace, 1.2, for_ms=10_000))[-1]


def test_one_episode_is_one_episode() -> None:
    pace = _learnt()
    told = list(_slow_steps(pace, 6, for_ms=60_000))
    assert sum(now and not before for before, now in pairwise(told)) == 1


def test_single_slow_steps_are_none() -> None:
    pace = _learnt()
    for number in range(20_000):
        pace.hear(_step(2, 300, slowness=50 if number % 5 == 0 else 1))
        assert not pace.is_slow


def test_the_next_worker_begins_unsuspected_and_is_held_to_the_same_pace() -> None:
    pace = _learnt()
    assert list(_slow_steps(pace, 6, for_ms=20_000))[-1]
    pace.forget_worker()
    assert not pace.is_slow
    assert list(_slow_steps(pace, 6, for_ms=20_000))[-1]


@given(seed=st.integers(0, 2**32), noise=st.floats(1.0, 1.9))
def test_no_mixture_of_work_makes_a_steady_machine_slow(seed: int, noise: float) -> None:
    """Any batch, any length of context, prompts between the steps, and some noise on all of it."""
    chance = random.Random(seed)
    pace = Pace()
    for _ in range(60):
        num_tokens, kv_tokens = chance.randint(1, 64), chance.randint(1, 100_000)
        for _ in range(chance.randint(1, 60)):
            pace.hear(_step(num_tokens, kv_tokens, chance.uniform(1.0, noise)))
            assert not pace.is_slow
            kv_tokens += num_tokens
            if chance.random() < 0.1:
                pace.hear(_step(num_tokens, kv_tokens, num_read=chance.randint(1, 10_000)))


def _encoding(num_tokens: int, num_longest: int, slowness: float = 1.0) -> EngineStats:
    """Of an encoder: a start, the tokens, and what each has to attend to."""
    calm_ms = 3.0 + 0.1 * num_tokens + 0.0002 * num_tokens * num_longest
    return EngineStats(
        forward_ms=calm_ms * slowness, num_encoded_tokens=num_tokens, num_longest=num_longest
    )


def _encodings(seed: int, slowness: float = 1.0) -> Iterator[EngineStats]:
    """Queries and documents of all lengths."""
    draw = random.Random(seed)
    while True:
        num_longest = round(2 ** draw.uniform(2, 9))
        yield _encoding(num_longest * draw.randint(1, 16), num_longest, slowness)


@given(st.integers(0, 1000))
def test_an_encoder_of_mixed_inputs_is_not_slow(seed: int) -> None:
    pace = Pace()
    for step in islice(_encodings(seed), 1500):
        pace.hear(step)
        assert not pace.is_slow


def test_an_encoder_that_stays_slow_is_a_straggler() -> None:
    pace = Pace()
    for step in islice(_encodings(1), 3000):
        pace.hear(step)
    for step in islice(_encodings(2, slowness=9), 200):
        pace.hear(step)
    assert pace.is_slow
    for step in islice(_encodings(3), 2000):
        pace.hear(step)
    assert not pace.is_slow
