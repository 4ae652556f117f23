"""Identifiers sort in the order in which they were made."""

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval import ids
from retrieval.ids import uuid7


def test_it_is_a_uuid_of_version_7_that_tells_the_time() -> None:
    before_ms = time.time_ns() // 1_000_000
    made = uuid7()
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert 0 <= (made.int >> 80) - before_ms < 10_000


def test_those_of_one_millisecond_sort_as_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    monkeypatch.setattr(ids, "_last", 0)
    made = [uuid7() for _ in range(10_000)]  # more than 12 bits can count
    assert made == sorted(set(made))
    assert (made[0].int >> 80) == now_ns // 1_000_000
    assert (made[-1].int >> 80) - now_ns // 1_000_000 <= 3
    assert {(one.version, one.variant) for one in made} == {(7, uuid.RFC_4122)}


def test_they_sort_so_when_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = uuid7()
    hour_ago_ns = time.time_ns() - 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: hour_ago_ns)
    assert before < uuid7() < uuid7()


def test_they_sort_so_in_each_of_several_threads() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: [uuid7() for _ in range(2_000)], range(4)))
    assert all(one == sorted(one) for one in made)
    assert len({each for one in made for each in one}) == 8_000


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from Python 3.12 on
def test_a_child_makes_them_whatever_its_parent_was_doing() -> None:
    with ThreadPoolExecutor(1) as thread:
        busy = thread.submit(lambda: [uuid7() for _ in range(20_000)])
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                uuid7()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        busy.result()
