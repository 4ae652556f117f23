"""Short work stays on the event loop, long work leaves it; both are the same work."""

import threading
from contextvars import ContextVar

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
