"""Looks beside steps: what is wanted now, in that order, and behind everything else."""

import os
import sys
import threading
from threading import Event

import pytest

from inference.vision.looks import Looks


def test_only_what_is_wanted_last_is_looked_at() -> None:
    looks: Looks[str, str] = Looks()
    has_begun, may_end, seen = Event(), Event(), list[str]()

    def first() -> str:
        has_begun.set()
        assert may_end.wait(60)
        return "first"

    def look(name: str) -> str:
        seen.append(name)
        return name

    looks.want([("first", first), ("dropped", lambda: look("dropped"))])
    assert has_begun.wait(60)
    looks.want([(name, lambda name=name: look(name)) for name in ("first", "b", "a")])  # type: ignore[misc]
    assert [*looks.begun()] == ["first"]
    may_end.set()
    done: dict[str, str | BaseException] = {}
    while len(done) < 3:
        done |= dict(looks.take_done(60))
    assert [*done] == ["first", "b", "a"]
    assert seen == ["b", "a"]
    assert not looks.begun()


def test_what_a_look_raises_is_told() -> None:
    looks: Looks[str, float] = Looks()
    looks.want([("bad", lambda: 1 / 0), ("good", lambda: 2.0)])
    done = dict([*looks.take_done(60)])
    while len(done) < 2:
        done |= dict(looks.take_done(60))
    assert isinstance(done["bad"], ZeroDivisionError)
    assert done["good"] == 2.0


def test_a_look_that_nobody_wants_is_left() -> None:
    looks: Looks[str, str] = Looks()
    has_begun = Event()

    def endless() -> str:
        has_begun.set()
        while True:
            looks.go_on()

    looks.want([("endless", endless)])
    assert has_begun.wait(60)
    looks.leave_unless([])  # it is in nobody's way
    assert [*looks.begun()] == ["endless"]
    looks.want([("next", lambda: "seen")])
    looks.leave_unless(["endless", "next"])
    assert not looks.take_done(0.01)
    looks.leave_unless(["next"])
    assert looks.take_done(60) == [("next", "seen")]
    has_begun.clear()
    looks.want([("endless", endless)])
    assert has_begun.wait(60)
    looks.forget_all()
    assert not looks.begun()
    looks.go_on()  # elsewhere there is nothing to leave


@pytest.mark.skipif(sys.platform != "linux", reason="niceness is a whole process's elsewhere")
def test_steps_go_before_looks() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    looks: Looks[str, int] = Looks()
    own = niceness()
    looks.want([("how nice", niceness)])
    assert looks.take_done(60) == [("how nice", min(19, max(own, 10)))]
    assert niceness() == own
