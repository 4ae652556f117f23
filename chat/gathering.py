"""Questions of many at the same time, answered together.

What a database is asked for one request costs about as much as for sixty of the same kind, and where a
row is locked, sixty would wait in line. While one call is under way questions gather; the next call
answers all of them. So a lone question waits for nobody, and nothing is answered by what was found
before it was asked. Known from databases as group commit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, TypeVar

from chat.arrivals import are_expected

CALM_S = 0.0003  # a turn of the loop in which nobody does much
TURN_S = 0.001
LONGEST_S = 0.02
MOST_ALONE = 3  # turns in which nobody has come

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(slots=True)
class _Group(Generic[Q, A]):
    """`waiting` are the questions of the next call."""

    waiting: "list[tuple[Q, asyncio.Future[A]]]" = field(default_factory=list)
    num_working: int = 0


class Gathering(Generic[Q, A]):
    """`answer_all` gives for each question its answer, or the exception that it ends with.

    It runs in the context of one of those who ask: whose rows are seen, and what else goes by context,
    has to be the same for all questions of a group. For one event loop at a time. With `at_most` a
    call answers so many, in the order in which they came: what the first ones wait for begins before
    the last ones are answered. With `at_once` so many calls are under way at the same time.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]],
        at_most: int | None = None,
        at_once: int = 1,
    ) -> None:
        self._answer_all = answer_all
        self._at_most = at_most
        self._at_once = at_once
        # A group is here while somebody works for it.
        self._groups: dict[Hashable, _Group[Q, A]] = {}
        self._working: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

    async def ask(self, question: Q, group: Hashable = None) -> A:
        """The question is answered also where the one who asks is cancelled meanwhile."""
        return await self.asked(question, group)

    def asked(self, question: Q, group: Hashable = None) -> "asyncio.Future[A]":
        """The same for who is not to wait in a task; who does shields it, if others are to have it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        key = (loop, group)
        its = self._groups.setdefault(key, _Group())
        its.waiting.append((question, answer))
        if its.num_working < self._at_once:
            its.num_working += 1
            task = asyncio.create_task(self._work(key, its))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        return answer

    async def _work(self, key: Hashable, group: "_Group[Q, A]") -> None:
        asked: list[tuple[Q, asyncio.Future[A]]] = []
        try:
            await _calm(group)
            while asked := group.waiting[: self._at_most]:
                del group.waiting[: len(asked)]
                await self._answer(asked)
        finally:
            group.num_working -= 1
            if not group.num_working:
                del self._groups[key]
                asked += group.waiting
            for _, answer in asked:
                answer.cancel()  # of a loop that ends

    async def _answer(self, asked: Sequence[tuple[Q, "asyncio.Future[A]"]]) -> None:
        answers: Sequence[A | Exception]
        try:
            answers = await self._answer_all([question for question, _ in asked])
        except Exception as error:
            answers = [error] * len(asked)
        for (_, future), answer in zip(asked, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


async def _calm(group: _Group[Any, Any]) -> None:
    """Until the loop has done what was there to be done: of sixty who come at once the others are on
    their way to the same question, and a call for the first alone would take the lock of the interpreter
    from them. Where nothing is done, that is a turn of the loop.

    Where much is always done, it is not waited for: for so many turns behind the last who has come.
    """
    began_s = now_s = monotonic()
    num_asked, num_alone = len(group.waiting), 0
    while num_alone < MOST_ALONE and now_s - began_s < LONGEST_S:
        await asyncio.sleep(0)
        before_s, now_s = now_s, monotonic()
        if now_s - before_s < CALM_S:
            if not are_expected():
                return
            await asyncio.sleep(TURN_S)
            now_s = monotonic()
        num_alone = num_alone + 1 if len(group.waiting) == num_asked else 0
        num_asked = len(group.waiting)
