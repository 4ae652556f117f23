"""Whoever leaves, however they leave: what was computed is entered, and nothing stays held."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from chat.bills import Bill
from chat.events import Delta, Failed, Finished, Phase, RunUsage, Started, ToolCall
from chat.shielded import done_or_undone, to_its_end
from tests.chat.api_caller import Caller
from tests.chat.test_limits import a_key
from tests.sites import Site, email_of, wait_until

QUESTION = {"role": "user", "content": "word " * 60}


# --- what is entered ------------------------------------------------------------------------------


def bill(*events: Any) -> RunUsage:
    one = Bill("vitrine-small", 1)
    for event in events:
        one.note(0, event)
    return one.total(None).usage


TURN = Started("m", "r", 1)
READ = Phase("prefill", done=40, total=64, cached=16)
SAID = Delta("Hello", 0, ids=(3, 4))
ASKED = Phase("asking", detail="far", done=50, total=50)
HEARD = [Delta("Hello ", 0), Delta("you.", 6), ToolCall("c1", "f", "{}")]


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        ([Started("m", "r", 1)], RunUsage()),
        ([READ], RunUsage(40, 16, 0)),
        ([READ, SAID], RunUsage(64, 16, 2)),
        ([READ, SAID, Failed("worker_died", "gone")], RunUsage(0, 0, 2)),
        ([READ, SAID, Finished("stop", RunUsage(64, 16, 3))], RunUsage(64, 16, 3)),
        ([ASKED], RunUsage(50, 0, 0)),
        ([ASKED, *HEARD], RunUsage(50, 0, 4)),
        ([TURN, READ, SAID, TURN], RunUsage(64, 16, 2)),
        ([TURN, READ, SAID, TURN, READ], RunUsage(104, 32, 2)),
        ([TURN, READ, SAID, TURN, READ, SAID], RunUsage(128, 32, 4)),
        ([TURN, ASKED, *HEARD, TURN, ASKED], RunUsage(100, 0, 4)),
        ([ASKED, *HEARD, Failed("upstream_unavailable", "gone")], RunUsage(0, 0, 4)),
        ([ASKED, *HEARD, Finished("stop", RunUsage(48, 0, 5))], RunUsage(48, 0, 5)),
    ],
)
def test_one_that_is_left_costs_what_was_read_and_written(
    events: list[Any], usage: RunUsage
) -> None:
    assert bill(*events) == usage


# --- at a site ------------------------------------------------------------------------------------


class Books:
    """What a caller has in the ledger and what is held for them."""

    def __init__(self, site: Site, name: str) -> None:
        self.site, self.email = site, email_of(name)

    def _rows(self, sql: str) -> Any:
        own = f"host={self.site.data_dir}/sockets user=vitrine dbname=vitrine"
        where = "JOIN webapp_user u ON u.id = owner_id WHERE u.email = %s"
        with psycopg.connect(own) as connection:
            connection.execute("SET vitrine.scope = 'system'")
            return connection.execute(f"{sql} {where}", [self.email]).fetchone()

    def num_held(self) -> int:
        return int(self._rows("SELECT count(*) FROM chat_reservation")[0])

    def spent(self) -> tuple[int, int]:
        """Tokens read and written."""
        sums = "coalesce(sum(prompt_tokens), 0)::int, coalesce(sum(completion_tokens), 0)::int"
        found: tuple[int, int] = self._rows(f"SELECT {sums} FROM chat_usage")
        return found


@pytest.fixture(scope="module")
def books(chat_site: Site) -> Books:
    return Books(chat_site, "leaver")


@pytest.fixture(scope="module")
def leaver(chat_site: Site) -> Caller:
    return Caller(chat_site, a_key(chat_site, name="leaver", tokens_per_day=10_000_000))


def ask(caller: Caller, **more: Any) -> socket.socket:
    """Post a stream, and read nothing of it."""
    body = {"model": "endless", "messages": [QUESTION], "stream": True, **more}
    content = json.dumps(body).encode()
    host, port = caller.url.split("/")[2].split(":")
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.connect((host, int(port)))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in caller.headers.items())
    one.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return one


def test_a_reader_who_stalls_and_leaves_pays_for_it(leaver: Caller, books: Books) -> None:
    before = books.spent()
    with closing(ask(leaver, logprobs=True, top_logprobs=20, max_tokens=1900, n=2)):
        wait_until(books.num_held)
        time.sleep(3)  # so that what is written is more than all buffers hold
    wait_until(lambda: not books.num_held(), timeout_s=20)
    after = books.spent()
    assert after[0] - before[0] >= 60
    assert after[1] > before[1]


@pytest.mark.parametrize("wait_s", [0.0, 0.01, 0.05, 0.1, 0.3])
def test_who_leaves_at_once_leaves_nothing_held(
    leaver: Caller, books: Books, wait_s: float
) -> None:
    gone = [ask(leaver) for _ in range(10)]
    time.sleep(wait_s)
    for one in gone:
        one.close()
    time.sleep(1)  # what is held late is held by now
    wait_until(lambda: not books.num_held(), timeout_s=20)


def test_several_answers_fit_into_what_is_left_but_for_one(
    chat_site: Site, leaver: Caller, books: Books
) -> None:
    # More than all of a day's could never be had, which is another refusal.
    assert (
        leaver.post("/completions", {"model": "short", "prompt": ["one"] * 20}).status_code == 200
    )
    spent = sum(books.spent())
    mine = "slug = (SELECT tier_id FROM webapp_user WHERE email = %s)"

    def leave(num_tokens: int) -> None:
        limit = f"UPDATE webapp_tier SET tokens_per_day = %s WHERE {mine}"
        chat_site.execute(limit, num_tokens, books.email)

    leave(spent + 10)
    body = {"model": "short", "prompt": ["one", "two"] * 4, "max_tokens": 20}
    refused = leaver.post("/completions", body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
    assert sum(books.spent()) == spent
    leave(spent + 8 * (20 + 2) + 10)
    assert leaver.post("/completions", body).status_code == 200
    leave(10_000_000)


# --- cancelled in the middle ----------------------------------------------------------------------


@pytest.mark.parametrize("when_s", [0.0, 0.02, 0.2])
async def test_what_nobody_waits_for_any_more_is_undone(when_s: float) -> None:
    state = SimpleNamespace(done=0, undone=0)

    async def work() -> int:
        await asyncio.sleep(0.05)
        state.done += 1
        return 7

    async def undo(value: int) -> None:
        assert value == 7
        state.undone += 1

    task = asyncio.create_task(done_or_undone(work(), undo))
    await asyncio.sleep(when_s)
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0.2)
    assert (state.done, state.undone) == ((1, 0) if when_s > 0.1 else (state.undone, state.undone))


async def test_work_comes_to_its_end_without_its_caller() -> None:
    ended: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0.05)
        ended.append(1)

    task = asyncio.create_task(to_its_end(work()))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await asyncio.sleep(0.1)
    assert ended == [1]


async def test_what_fails_is_told_and_not_undone() -> None:
    undone: list[Any] = []
    undo: Callable[[Any], Any] = undone.append

    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await done_or_undone(work(), undo)
    assert not undone
