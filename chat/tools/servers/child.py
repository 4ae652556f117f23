"""A tool server that is started here: lines of JSON to its standard input, and from its output.

The SDK's own transport joins what it reads of a line again with each piece, without an end: a server
that never ends its line takes a processor and all of the memory.
"""

import asyncio
import ctypes
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, TextIO

import anyio

from chat.tools.servers.bounded import MAX_ANSWER_BYTES
from chat.tools.servers.spec import ToolServerSpec

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Incoming = SessionMessage | Exception
    Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

MAX_MESSAGES_PER_S = 200
"""That are no answers: notices, and what a server asks of us. It is read no faster."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_END_S = 1.5  # after its input was closed, and again after SIGTERM


@asynccontextmanager
async def started(spec: ToolServerSpec, errors: TextIO) -> "AsyncGenerator[Streams]":
    """It lives within. Raises OSError where it cannot be started."""
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        spec.command,
        *spec.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        env=get_default_environment() | dict(spec.env),
        cwd=spec.cwd,
        start_new_session=True,
        preexec_fn=_end_with_us,
        limit=MAX_ANSWER_BYTES,
    )
    heard, read = anyio.create_memory_object_stream["Incoming"](0)
    write, said = anyio.create_memory_object_stream["SessionMessage"](0)
    tasks = [asyncio.create_task(_hear(process, heard)), asyncio.create_task(_say(process, said))]

    def cut(_: "asyncio.Task[None]") -> None:
        """Without the one it is of no use, and whoever waits is to hear of it."""
        heard.close()
        said.close()

    for task in tasks:
        task.add_done_callback(cut)
    try:
        yield read, write
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        read.close()
        write.close()
        await _end(process)


def _end_with_us() -> None:
    """Killed, this process closes the child's input, which one that is busy or hangs would not see."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def _hear(process: Process, heard: "MemoryObjectSendStream[Incoming]") -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

    assert process.stdout is not None
    begun_s, count = monotonic(), 0
    with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while line := await process.stdout.readline():  # ValueError: longer than the limit
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                message = None  # some print what they do
            if not isinstance(message, JSONRPCResponse | JSONRPCError):
                count += 1
                if count >= MAX_MESSAGES_PER_S:
                    await asyncio.sleep(max(0.0, begun_s + 1 - monotonic()))
                    begun_s, count = monotonic(), 0
            if message is not None:
                await heard.send(SessionMessage(message))


async def _say(process: Process, said: "MemoryObjectReceiveStream[SessionMessage]") -> None:
    assert process.stdin is not None
    with suppress(OSError, anyio.ClosedResourceError):
        async for one in said:
            line = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()


async def _end(process: Process) -> None:
    """As the protocol has it: its input is closed, then it is told, then it is killed, with all that it
    has started."""
    assert process.stdin is not None
    process.stdin.close()
    for sent in (signal.SIGTERM, signal.SIGKILL, None):
        deadline_s = monotonic() + _END_S
        # wait() would wait for whoever has inherited its pipes
        while process.returncode is None and monotonic() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        if process.returncode is not None or sent is None:
            break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sent)
    process._transport.close()  # type: ignore[attr-defined] # pipes that others have inherited
