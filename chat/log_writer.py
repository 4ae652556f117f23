"""What all running answers say goes to the log together, in one statement at a time.

A commit costs the same for one answer's events as for those of a hundred. While a statement is on its
way, what comes next gathers for the one behind it.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from chat import run_log
from chat.database_line import DatabaseLine
from chat.events import LogEvent
from chat.persisting import AWAY
from chat.run_log import LeaseLost, ToAppend
from chat.spans import Trace

_Waiting = tuple[ToAppend, "asyncio.Future[None]"]


class LogWriter:
    """Of one process, on one event loop."""

    def __init__(self, lease_owner: str) -> None:
        self.lease_owner = lease_owner
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        # Of its own: what is written down must not stand in line behind what asks to begin.
        self._line = DatabaseLine()

    async def append(
        self,
        generation_id: UUID,
        first_seq: int,
        events: Sequence[LogEvent],
        trace: Trace | None = None,
    ) -> None:
        """Log events of a run, and its trace where it has news; returns once they are stored.

        Raises LeaseLost, or what kept it from being stored.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((ToAppend(generation_id, first_seq, events, trace), done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all(), name="log writer")
        await done

    def close(self) -> None:
        """Close the connection. The process has one of these and never does."""
        self._line.close()

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._write(batch)

    async def _write(self, batch: list[_Waiting]) -> None:
        news = [each for each, _ in batch]
        try:
            held = await run_log.append_all_on(self._line, self.lease_owner, news)
        except AWAY as error:
            _fail(batch, error)
        except Exception as error:
            if len(batch) == 1:
                return _fail(batch, error)
            for waiting in batch:  # one of them cannot be stored: the others must not suffer
                await self._write([waiting])
        except BaseException as error:
            _fail(batch, error)
            raise
        else:
            for each, done in batch:
                if done.done():
                    continue
                if each.generation_id in held:
                    done.set_result(None)
                else:
                    done.set_exception(LeaseLost())


def _fail(batch: list[_Waiting], error: BaseException) -> None:
    for _, done in batch:
        if not done.done():
            done.set_exception(error)
