"""Questions of many at the same time, answered together.

What a database is asked for one request costs about as much as for sixty of the same kind, and where a
row is locked, sixty would wait in line. While one call is under way questions gather; the next call
answers all of them. So a lone question waits for nobody, and nothing is answered by what was found
before it was asked. Known from databases as group commit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Gathering(Generic[Q, A]):
    """`answer_all` gives for each question its answer, or the exception that it ends with.

    It runs in the context of one of those who ask: whose rows are seen, and what else goes by context,
    has to be the same for all questions of a group. For one event loop at a time. With `at_most` a
    call answers so many, in the order in which they came: what the first ones wait for begins before
    the last ones are answered.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]],
        at_most: int | None = None,
    ) -> None:
        self._answer_all = answer_all
        self._at_most = at_most
        # A group is here while somebody works for it; its questions are those of the next call.
        self._groups: dict[Hashable, list[tuple[Q, asyncio.Future[A]]]] = {}
        self._working: set[asyncio.Task[None]] = set()  # the loop itself holds tasks weakly

    async def ask(self, question: Q, group: Hashable = None) -> A:
        """The question is answered also where the one who asks is cancelled meanwhile."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        key = (loop, group)
        if key in self._groups:
            self._groups[key].append((question, answer))
        else:
            self._groups[key] = []
            task = asyncio.create_task(self._work(key, [(question, answer)]))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        return await answer

    async def _work(self, key: Hashable, asked: list[tuple[Q, "asyncio.Future[A]"]]) -> None:
        try:
            while asked:
                await self._answer(asked)
                waiting = self._groups[key]
                asked = waiting[: self._at_most]
                self._groups[key] = waiting[len(asked) :]
        finally:
            for _, answer in [*asked, *self._groups.pop(key)]:
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
