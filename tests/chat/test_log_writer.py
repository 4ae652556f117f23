"""Text of many people's answers is logged together; one that cannot be stored stops no other."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import DataError, connection
from django.utils import timezone

from chat import actions, run_log, turns
from chat.database_line import DatabaseLine
from chat.events import Delta, LogEvent, Started
from chat.log_writer import LogWriter
from chat.models import Generation, GenerationEvent
from chat.rights import Rights
from chat.run_log import LeaseLost, ToAppend
from chat.spans import Clock, Trace
from inference import SamplingParams
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)
OWNER = "this process"
STARTED = Started("vitrine-small", "r1", 7)


def begun(user: "User", lease_owner: str = OWNER) -> UUID:
    with as_user(user.pk):
        draft = actions.Draft(client_id=str(uuid4()), text="Hi", model="vitrine-small")
        run = actions.send_message(Rights(user), draft, lease_owner=lease_owner).generation
        run_log.append(run.pk, lease_owner, 1, [STARTED])
        return run.pk


def texts_of(user: "User", run: UUID) -> list[str]:
    """Behind the start, in the order of their numbers, which have no gap."""
    with as_user(user.pk):
        rows = GenerationEvent.objects.filter(generation=run, seq__gt=1).order_by("seq")
        events = list(rows.values_list("seq", "payload__text"))
        assert [seq for seq, _ in events] == list(range(2, 2 + len(events)))
        assert Generation.objects.get(pk=run).seq == 1 + len(events)
        return [text for _, text in events]


async def write(user: "User", texts: dict[UUID, Sequence[LogEvent]]) -> list[BaseException | None]:
    """All at once, in the scope of one of the users: what became of each."""
    with as_user(user.pk), closing(LogWriter(OWNER)) as writer:
        return await asyncio.gather(
            *(writer.append(run, 2, events) for run, events in texts.items()),
            return_exceptions=True,
        )


def test_each_gets_its_own(alice: "User", bob: "User", monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[int] = []
    append_all = run_log.append_all_on

    async def counted(line: DatabaseLine, lease_owner: str, news: Sequence[ToAppend]) -> set[UUID]:
        statements.append(len(news))
        return await append_all(line, lease_owner, news)

    runs = {begun(alice): alice, begun(bob): bob}
    monkeypatch.setattr(run_log, "append_all_on", counted)
    texts = {run: [Delta(f"{user.name} 1", 0), Delta(" 2", 7)] for run, user in runs.items()}
    assert async_to_sync(write)(alice, texts) == [None, None]
    assert statements == [2]
    for run, user in runs.items():
        assert texts_of(user, run) == [f"{user.name} 1", " 2"]


def test_turns_and_traces_go_the_same_way(alice: "User", bob: "User") -> None:
    runs = {begun(alice): alice, begun(bob): bob}
    params = SamplingParams(max_tokens=5, seed=7, stop=("\n",))
    begins = [replace(STARTED, turn=1, params=params, prompt_ids=(1, 2))]
    goes_on = [replace(begins[0], prompt_ids=(1, 2, 3)), Delta("x", 0)]

    async def begin() -> list[Trace]:
        traces = [Trace(Clock(timezone.now()), user.name) for user in runs.values()]
        with closing(LogWriter(OWNER)) as writer:
            for first_seq, events in ((2, begins), (3, goes_on)):
                await asyncio.gather(
                    *(
                        writer.append(run, first_seq, events, trace)
                        for run, trace in zip(runs, traces, strict=True)
                    )
                )
        return traces

    assert all(trace.is_saved for trace in async_to_sync(begin)())
    for run, user in runs.items():
        with as_user(user.pk):
            row = Generation.objects.get(pk=run)
            assert (row.seq, row.status, row.model_revision) == (4, "decode", "r1")
            assert row.trace == {"id": user.name, "spans": []}
            turn = row.turns.get(index=1)
            assert (turn.prompt_ids, turn.output_ids) == ([1, 2, 3], []), "it began anew"
            assert turns.params_of(turn) == params


def test_who_lost_the_lease_writes_nothing_and_the_others_do(alice: "User", bob: "User") -> None:
    lost, kept = begun(alice, "another process"), begun(bob)
    result = async_to_sync(write)(bob, {lost: [Delta("a", 0)], kept: [Delta("b", 0)]})
    assert [type(error) for error in result] == [LeaseLost, type(None)]
    assert texts_of(alice, lost) == []
    assert texts_of(bob, kept) == ["b"]


def test_a_text_that_cannot_be_stored_stops_no_other(alice: "User", bob: "User") -> None:
    bad, good = begun(alice), begun(bob)
    result = async_to_sync(write)(alice, {bad: [Delta("\x00", 0)], good: [Delta("b", 0)]})
    assert isinstance(result[0], DataError)
    assert result[1] is None
    assert texts_of(alice, bad) == []
    assert texts_of(bob, good) == ["b"]


def test_logging_for_others_opens_no_door(alice: "User", bob: "User") -> None:
    run = begun(alice)
    with as_user(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT chat_append_events('[]', %s, now())", [OWNER])
        cursor.execute("SELECT current_setting('vitrine.scope')")
        assert cursor.fetchone() == (f"user:{bob.pk}",)
        assert not GenerationEvent.objects.filter(generation=run).exists()
