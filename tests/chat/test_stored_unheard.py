"""The connection breaks at a COMMIT that came through: what is stored is not stored again."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from chat import run_log, run_log_reading, runs
from chat.asking import AnswerRequest
from chat.events import Delta, Event, Finished, Started
from chat.models import Usage
from chat.run_log import LeaseLost
from tests.chat.sent_runs import run_of, sent_by
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)


async def two_words(*_: object) -> AsyncGenerator[Event, None]:
    yield Started("vitrine-small", "r", 7)
    yield Delta("Hello", 0, ids=(3,))
    await asyncio.sleep(0.3)
    yield Delta(" there", 5, ids=(4,))
    await asyncio.sleep(0.3)
    yield Finished("stop")


def unheard(write: Any) -> Any:
    """Each first try is stored, and says that it is not."""
    known: set[str] = set()

    def tried(owner: Any, *arguments: Any) -> Any:
        done = write(owner, *arguments)
        if repr(arguments[:3]) not in known:
            known.add(repr(arguments[:3]))
            raise OperationalError("server closed the connection unexpectedly")
        return done

    return tried


async def written(run: runs.Run) -> list[runs.Run]:
    """To its end; those whose end was seen to."""
    seen: list[runs.Run] = []

    async def after(ended: runs.Run) -> None:
        seen.append(ended)

    runs.start(run, AnswerRequest(str(run.id), "vitrine-small", [], user="1"), after)
    assert run.task is not None
    await asyncio.wait({run.task}, timeout=30)
    runs._runs.pop(run.id, None)
    return seen


def unheard_on_line(append_all: Any) -> Any:
    known: set[str] = set()

    async def tried(line: Any, owner: Any, news: Any) -> Any:
        done = await append_all(line, owner, news)
        if repr(news) not in known:
            known.add(repr(news))
            raise OperationalError("server closed the connection unexpectedly")
        return done

    return tried


@pytest.mark.parametrize(
    ("function", "unheard"), [("append_all_on", unheard_on_line), ("finish", unheard)]
)
def test_an_answer_goes_on_to_its_end(
    alice: "User", monkeypatch: pytest.MonkeyPatch, function: str, unheard: Any
) -> None:
    monkeypatch.setattr(runs, "answer", two_words)
    monkeypatch.setattr(run_log, function, unheard(getattr(run_log, function)))
    with as_user(alice.pk):
        sent = sent_by(alice)
        run = run_of(sent)
        seen = asyncio.run(written(run))
        sent.answer.refresh_from_db()
        assert (sent.answer.status, sent.answer.text) == ("complete", "Hello there")
        assert [event.kind for event in run.events] == ["started", "delta", "delta", "finished"]
        logged = run_log_reading.events_after(run.id, 0)
        assert [seq for seq, _ in logged] == [1, 2, 3, 4]
        assert Usage.objects.get().num_requests == 1
    assert seen == [run], "its tabs are told, and it gets a title"


def test_what_another_process_has_written_is_not_ours(
    alice: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    async def taken_over(*arguments: Any) -> None:
        if not tries:
            tries.append(None)
            raise OperationalError("server closed the connection unexpectedly")
        raise LeaseLost

    tries: list[None] = []
    with as_user(alice.pk):
        sent = sent_by(alice, "another process")
        run_log.append(sent.generation.pk, "another process", 1, [Started("m", "r", 7)])

        async def store() -> None:
            await run_of(sent)._store(1, taken_over)

        with pytest.raises(LeaseLost):
            asyncio.run(store())
