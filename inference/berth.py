"""Where a worker lies that has left its device: its process and its weights, in the host's memory.

It wakes by copying weights back, which takes as long as the bus needs; a new process would read files
and compile kernels. The host's ledger knows of it, and whoever needs that memory has it: the process
ends, and is loaded anew when it is wanted.
"""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass

from inference.channel import AsyncChannel
from inference.needs import WORKER_BYTES, Needs
from inference.placement import Place
from inference.residency import Residency
from inference.worker_process import WorkerProcess, bury


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A process that can be spoken to. `words` reads its standard error, `needs` are of its place."""

    process: WorkerProcess
    channel: AsyncChannel
    words: "asyncio.Task[None]"
    place: Place
    needs: Needs

    async def end(self) -> None:
        self.channel.close()
        await bury(self.process)
        await asyncio.wait({self.words}, timeout=1.0)  # its last words
        self.words.cancel()


class Berth:
    """Of one worker. Lives on the event loop."""

    def __init__(self, name: str, host: Residency) -> None:
        self.lying: LiveWorker | None = None
        self._name = f"{name}, asleep on the host"
        self._host = host
        self._room = ExitStack()
        self._ending: asyncio.Task[None] | None = None

    def has_room(self, weights_bytes: int) -> bool:
        return self._host.has_spare(weights_bytes + WORKER_BYTES)

    def lay(self, worker: LiveWorker, host_bytes: int) -> bool:
        """Let it lie here. False: there is no room any more."""
        assert self.lying is None
        if not self.has_room(host_bytes):
            return False
        room = self._host.room(self._name, host_bytes + WORKER_BYTES, self._retire)
        self._room.enter_context(room)
        self.lying = worker
        self._host.rest(self._name)
        return True

    async def take(self) -> LiveWorker | None:
        """The worker that lies here, to be woken; None where there is none that lives."""
        if self._ending is not None:
            await self._ending
        worker, self.lying = self.lying, None
        self._room.close()
        if worker is not None and worker.process.has_ended:
            await worker.end()
            return None
        return worker

    async def clear(self) -> None:
        if (worker := await self.take()) is not None:
            await worker.end()

    def _retire(self, is_needed: bool) -> None:
        """Nobody uses what lies here, so it goes at once."""
        if is_needed and self.lying is not None:
            worker, self.lying = self.lying, None
            self._host.leave(self._name)
            self._ending = asyncio.get_running_loop().create_task(self._end(worker))

    async def _end(self, worker: LiveWorker) -> None:
        await worker.end()
        self._room.close()
        self._ending = None
