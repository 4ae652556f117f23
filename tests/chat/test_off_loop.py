"""Short work stays on the event loop, long work leaves it; both are the same work."""

import asyncio
import threading
from contextvars import ContextVar
from weakref import WeakValueDictionary

import pytest

from chat import off_loop
from inference import Caller
from moderation.classifiers import reading
from moderation.classifiers.by_rules import RuleClassifier

_name: ContextVar[str] = ContextVar("name", default="")
SHORT = "Write to a.b@example.org, please."


def where() -> tuple[int, str]:
    return threading.get_ident(), _name.get()


@pytest.mark.parametrize(
    ("num_chars", "stays"),
    [(0, True), (off_loop.SHORT_CHARS, True), (off_loop.SHORT_CHARS + 1, False)],
)
async def test_a_prompt_leaves_it_where_it_is_long(num_chars: int, stays: bool) -> None:
    _name.set("alice")
    thread, name = await off_loop.off_loop_if_long(num_chars, where)
    assert (thread == threading.get_ident()) is stays
    assert name == "alice"


@pytest.fixture(autouse=True)
def turns_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock is its loop's. One that a test left may be in a cycle, and is not collected yet."""
    monkeypatch.setattr(off_loop._COUNTING, "_turns", WeakValueDictionary())


async def test_who_counts_much_keeps_nobody_waiting() -> None:
    going, let_go = threading.Event(), threading.Event()
    order: list[str] = []

    def count(name: str) -> None:
        going.set()
        let_go.wait(10)
        order.append(name)

    async def counted(user: str, name: str) -> None:
        await off_loop.off_loop_for_counting(user, count, name)

    calls = [asyncio.create_task(counted("alice", f"alice {n}")) for n in range(9)]
    await asyncio.sleep(0)
    calls.append(asyncio.create_task(counted("bob", "bob")))
    assert await asyncio.to_thread(going.wait, 10)
    assert await asyncio.wait_for(off_loop.off_loop(where), 5), "prompts are made meanwhile"
    let_go.set()
    await asyncio.gather(*calls)
    assert order[:2] == ["alice 0", "bob"]
    assert order[2:] == [f"alice {n}" for n in range(1, 9)]


async def test_a_count_whose_caller_has_left_is_still_the_callers_turn() -> None:
    going, let_go = threading.Event(), threading.Event()

    def count() -> None:
        going.set()
        let_go.wait(10)

    def fail() -> None:
        raise ValueError("no text")

    left = asyncio.create_task(off_loop.off_loop_for_counting("alice", count))
    assert await asyncio.to_thread(going.wait, 10)
    left.cancel()
    waiting = asyncio.create_task(off_loop.off_loop_for_counting("alice", fail))
    await asyncio.wait({waiting}, timeout=0.2)
    assert left.cancelled()
    assert not waiting.done()
    let_go.set()
    with pytest.raises(ValueError, match="no text"):
        await waiting


async def test_texts_leave_it_where_they_are_long_together() -> None:
    me = threading.get_ident()
    half = "x" * (reading.SHORT_CHARS // 2)
    assert await reading.for_texts([half, half], threading.get_ident) == me
    assert await reading.for_texts([half, half, "x"], threading.get_ident) != me


async def test_what_is_found_is_the_same_on_both_ways() -> None:
    rules = RuleClassifier()
    (short,) = await rules.score([SHORT], Caller())
    (long,) = await rules.score([SHORT + " word" * reading.SHORT_CHARS], Caller())
    assert short == long
    assert max(short.values()) > 0.5
