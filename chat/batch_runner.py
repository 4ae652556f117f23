"""Batches at work in this process, a few lines at a time, behind whatever anybody waits for.

The batches of one user go one after the other; those of several share the lines in turns. What a line
is answered is a row before the next one begins, so a process that dies loses only the lines it was at,
and whoever takes the batch up asks those again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import Error
from django.utils import timezone

from chat import batch_calls, batch_files, batch_lines, batch_rows, file_store
from chat.batch_calls import Answer
from chat.batch_lines import BadLine, Line
from chat.batch_rows import End, LeaseLost
from chat.db import in_db
from chat.draining import is_draining
from chat.errors import BudgetSpent
from chat.models import Batch, BatchStatus
from chat.off_loop import off_loop, off_loop_for_files
from chat.rights import Rights
from chat.runs import PROCESS_ID

logger = logging.getLogger(__name__)

BEAT_S = 2.0  # a fifth of the lease
RESTS_FROM_S = 10.0  # who waits longer for a budget leaves its place to another batch
MAX_AT_ONCE = 16  # batches of different users that this process has begun

T = TypeVar("T")
_running: dict[UUID, "BatchRun"] = {}
_slots: asyncio.Semaphore | None = None  # lines of all batches; who waits longest is next

_CANCELLED = ("batch_cancelled", "The batch was cancelled before this request was answered.")
_EXPIRED = (
    "batch_expired",
    "The 24 hours of the batch were over before this request was answered.",
)
_NO_RIGHTS = (
    "rights_ended",
    "The account or the API key that made the batch may not go on with it.",
)
_NO_ROOM = (
    "storage_quota_exceeded",
    "What was answered already takes all the room that its owner has for files.",
)
_GONE = ("input_file_gone", "The file of the batch is gone.")
_INTERRUPTED = ("interrupted", "The server went down several times while it answered this batch.")


async def take_up(batch_id: UUID, owner_id: Any, *, is_ending: bool) -> bool:
    """Begin, or go on, with a batch that nobody works on. In the scope of its owner.

    False: not now, or somebody else has it.
    """
    if is_draining() or batch_id in _running:
        return False
    is_full = len(_running) >= MAX_AT_ONCE or owner_id in {r.owner_id for r in _running.values()}
    if is_full and not is_ending:
        return False
    row = await in_db(batch_rows.claim)(batch_id, PROCESS_ID)
    if row is None:
        return False
    run = BatchRun(row)
    _running[batch_id] = run
    run.task = asyncio.create_task(run.run(), name=f"batch {batch_id}")
    run.task.add_done_callback(lambda _: _running.pop(batch_id, None))
    return True


async def stop_all() -> None:
    """Leave every batch to the next process."""
    tasks = [run.task for run in _running.values() if run.task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class BatchRun:
    """One batch at work. `reason` is why it ends before every line is answered: a code and a message."""

    def __init__(self, row: Batch) -> None:
        self.row = row
        self.owner_id = row.owner_id
        self.task: asyncio.Task[None] | None = None
        self.reason: tuple[str, str] | None = None
        self.rights: Rights | None = None
        self._workers: list[asyncio.Task[None]] = []
        self._lines: Iterator[Line] = iter(())
        self._reading = asyncio.Lock()
        self._rest_s = 0.0

    async def run(self) -> None:
        beating: asyncio.Task[None] | None = None
        try:
            await self._look(self.row)
            beating = asyncio.create_task(self._beat())
            await self._work_through()
        except LeaseLost:
            logger.warning("batch %s is gone, or another process works on it", self.row.pk)
        except asyncio.CancelledError:
            # It has not died of this process, and the next one need not wait.
            await asyncio.shield(in_db(batch_rows.release)(self.row.pk, PROCESS_ID))
            raise
        except Exception:
            # Its lease runs out, and it is tried again. Its lines are not for ever, see MAX_ATTEMPTS;
            # but its end, for which the disk may be too full, has to be written one day.
            logger.exception("batch %s failed", self.row.pk)
            await self._put_off(beating)
        finally:
            if beating is not None:
                beating.cancel()

    async def _put_off(self, beating: asyncio.Task[None] | None) -> None:
        if beating is not None:
            beating.cancel()  # it would claim the lease again
            await asyncio.wait({beating})
        with suppress(Error):
            await in_db(batch_rows.put_off)(self.row.pk, PROCESS_ID, self.row.attempts)

    async def _work_through(self) -> None:
        if self._is_to_be(BatchStatus.VALIDATING) and not await self._is_right():
            return
        if self._is_to_be(BatchStatus.IN_PROGRESS):
            await self._answer_lines()
        if self.reason is None and self._rest_s:
            return await in_db(batch_rows.release)(self.row.pk, PROCESS_ID, self._rest_s)
        if self.reason is None:
            await in_db(batch_rows.begin_end)(self.row.pk, PROCESS_ID)
            await self._look(await self._renewed())
        await self._finish()
        logger.info("batch %s has ended", self.row.pk)

    def _is_to_be(self, status: BatchStatus) -> bool:
        return self.reason is None and self.row.status == status

    # --- whether it may go on -------------------------------------------------------------------

    async def _beat(self) -> None:
        """Keep the lease, and see what has changed: its end was asked for, time or rights are over."""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                row = await self._renewed()
                await self._look(row)
            except LeaseLost:
                assert self.task is not None
                self.task.cancel()
                return
            except Error:
                logger.warning("a batch could not be renewed, trying again", exc_info=True)
                continue
            if self.reason is not None:
                for worker in self._workers:
                    worker.cancel()

    async def _renewed(self) -> Batch:
        return await in_db(batch_rows.renew)(self.row.pk, PROCESS_ID)

    async def _look(self, row: Batch) -> None:
        self.row = row
        if row.status == BatchStatus.FINALIZING:
            self.reason = None
            return
        self.rights = await in_db(batch_rows.rights_of)(row)
        if row.status == BatchStatus.CANCELLING:
            self.reason = _CANCELLED
        elif row.expires_at <= timezone.now():
            self.reason = _EXPIRED
        elif self.rights is None:
            self.reason = _NO_RIGHTS
        elif row.attempts >= batch_rows.MAX_ATTEMPTS:
            self.reason = _INTERRUPTED
        elif row.status == BatchStatus.IN_PROGRESS and not await in_db(batch_rows.has_room)(row):
            self.reason = _NO_ROOM

    # --- lines ----------------------------------------------------------------------------------

    async def _is_right(self) -> bool:
        """Check the whole file. False: it is not, and the batch has failed."""
        path = file_store.path_of(self.row.input_file)
        try:
            checked = await off_loop_for_files(batch_lines.check, path, self.row.endpoint)
        except FileNotFoundError:
            checked = batch_lines.Checked()
            checked.complain(None, BadLine(*_GONE, "input_file_id"))
        if checked.errors:
            end = End(BatchStatus.FAILED, checked.errors)
            await in_db(batch_rows.finish)(self.row.pk, PROCESS_ID, end)
            return False
        await in_db(batch_rows.begin)(self.row.pk, PROCESS_ID, checked)
        await self._look(await self._renewed())
        return True

    async def _answer_lines(self) -> None:
        done = await in_db(batch_rows.done)(self.row.pk)
        path = file_store.path_of(self.row.input_file)
        if not await off_loop(path.exists):
            self.reason = _GONE
            return
        self._lines = batch_lines.read(path, self.row.endpoint, done)
        num_workers = min(settings.BATCH_LINES_AT_ONCE, self.row.num_lines)
        self._workers = [asyncio.create_task(self._work()) for _ in range(num_workers)]
        try:
            ends = await asyncio.gather(*self._workers, return_exceptions=True)
        finally:
            self._workers = []
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _work(self) -> None:
        while (line := await self._next()) is not None and self.reason is None:
            if self._rest_s or (answer := await self._answer(line)) is None:
                return
            # Whole or not at all: what ends the batch reads which lines have been answered.
            await _through(in_db(batch_rows.keep)(self.row, PROCESS_ID, line.number, answer))

    async def _next(self) -> Line | None:
        async with self._reading:
            return await _through(off_loop_for_files(next, self._lines, None))

    async def _answer(self, line: Line) -> Answer | None:
        """Ask, and ask again while it is not the line's fault that there is no answer. None: that will
        take long, and the batch rests. Tries are counted by how they end: who has waited for a budget
        has failed at nothing."""
        num_tries: Counter[str] = Counter()
        while True:
            if self.rights is None:
                await asyncio.sleep(BEAT_S)  # the next beat ends it
                continue
            async with _all_slots():
                answer = await batch_calls.ask(self.rights, self.row.endpoint, line)
            num_tries[answer.code] += 1
            wait_s = answer.wait_s(num_tries[answer.code])
            if wait_s is None:
                return answer
            if answer.code == BudgetSpent.code and wait_s > RESTS_FROM_S:
                self._rest_s = wait_s
                return None
            await asyncio.sleep(wait_s)

    # --- the end --------------------------------------------------------------------------------

    async def _finish(self) -> None:
        files = await _through(in_db(batch_files.write)(self.row, self.reason))
        end = End(self._status(), self._errors(), *files)
        try:
            await in_db(batch_rows.finish)(self.row.pk, PROCESS_ID, end)
        except LeaseLost:
            for file in files:
                if file is not None:
                    await off_loop(file_store.remove, file.pk)
            raise

    def _status(self) -> BatchStatus:
        if self.reason is None:
            return BatchStatus.COMPLETED
        if self.reason == _EXPIRED:
            return BatchStatus.EXPIRED
        is_fault = self.reason in (_INTERRUPTED, _GONE, _NO_ROOM)
        return BatchStatus.FAILED if is_fault else BatchStatus.CANCELLED

    def _errors(self) -> list[dict[str, Any]]:
        """Of a batch that was neither cancelled by its owner nor late."""
        if self.reason in (None, _CANCELLED, _EXPIRED):
            return []
        assert self.reason is not None
        code, message = self.reason
        return [{"code": code, "message": message, "param": None, "line": None}]


def _all_slots() -> asyncio.Semaphore:
    global _slots
    if _slots is None:
        _slots = asyncio.Semaphore(settings.BATCH_LINES_AT_ONCE)
    return _slots


async def _through(work: Awaitable[T]) -> T:
    """Awaited to its end, whatever is cancelled meanwhile: a thread goes on anyway."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
