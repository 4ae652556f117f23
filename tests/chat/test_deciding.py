"""Whether a tool may run: of several words about one call the first one counts, wherever it is said."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from chat import run_log, runs
from chat.asking import MAX_DECIDED, Control
from chat.deciding import decide_call
from tests.chat.sent_runs import run_of, sent_by
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User


async def decided_here(run: runs.Run, user: "User", *words: bool) -> bool:
    runs._runs[run.id] = run
    try:
        for word in words:
            await decide_call(user, run.id, "call", word)
        return await asyncio.wait_for(run.control.decision("call"), 1)
    finally:
        del runs._runs[run.id]


@pytest.mark.django_db(transaction=True)
def test_a_no_to_another_process_is_no_yes_here(alice: "User") -> None:
    """One tab's frames may reach another process than those of the next."""
    with as_user(alice.pk):
        run = run_of(sent_by(alice))
        run_log.decide(run.id, "call", False)
        assert asyncio.run(decided_here(run, alice, True)) is False
        assert run_log.decided(run.id) == {"call": False}


@pytest.mark.django_db(transaction=True)
def test_the_first_word_counts_here_as_well(alice: "User") -> None:
    with as_user(alice.pk):
        assert asyncio.run(decided_here(run_of(sent_by(alice)), alice, True, False)) is True


async def decide_much() -> int:
    control = Control()
    for number in range(2 * MAX_DECIDED):
        control.decide(f"call {number}", True)
    asked = asyncio.create_task(control.decision("another"))
    await asyncio.sleep(0)
    assert control.is_asking, "what is asked is asked, however much was said of what was not"
    control.stop()
    assert await asked is False
    return len(control._decided)


def test_words_about_calls_that_there_are_not_fill_no_memory() -> None:
    assert asyncio.run(decide_much()) == MAX_DECIDED + 1
