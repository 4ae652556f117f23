"""A worker as an operating system process: forked off the zygote, heard, buried."""

import asyncio
import atexit
import logging
import os
import pickle
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inference.config import EngineConfig

logger = logging.getLogger(__name__)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|_URL$|^VITRINE_MODELS$", flags=re.IGNORECASE)
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(slots=True)
class WorkerProcess:
    """A process that is not our child. `descriptor` stands for it, even when its pid is another's.

    It ends with the zygote that forked it: the one of that `generation`.
    """

    pid: int
    descriptor: int
    stderr: int
    generation: int = 0

    @property
    def has_ended(self) -> bool:
        if self.descriptor < 0:
            return True
        poll = select.poll()  # select() takes no descriptor beyond 1023
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def kill(self) -> None:
        if self.descriptor >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    async def wait(self) -> None:
        """Until it has ended."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        if self.has_ended:
            return
        loop.add_reader(self.descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self.descriptor)

    @property
    def has_lost_its_zygote(self) -> bool:
        """Whether it ended, or is about to, because another process did."""
        return _zygote.has_ended(self.generation)

    def close(self) -> None:
        """Let the descriptor go, once nobody waits any more."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class _Zygote:
    """The process that forks workers; see `zygote`. Blocks: to be used in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._generation = 0

    def fork(
        self, environment: dict[str, str], channel: int, stderr: int, timeout_s: float
    ) -> WorkerProcess:
        """A new worker with this channel; `stderr` is what it inherits. Raises OSError.

        A zygote that does not answer in time is replaced. Its first answer takes seconds.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start(environment)
            assert self._socket is not None
            file = _file_of(environment)
            try:
                self._socket.settimeout(timeout_s)
                socket.send_fds(self._socket, [b"fork"], [file, channel, stderr])
                answer, descriptors, _, _ = socket.recv_fds(self._socket, 1024, 1)
            except OSError:
                self._end()
                raise
            finally:
                os.close(file)
            if not answer:
                self._end()
                raise OSError("the process that forks workers ended")
            if not descriptors:
                raise OSError(answer.decode())
            return WorkerProcess(int(answer), descriptors[0], -1, self._generation)

    def has_ended(self, generation: int) -> bool:
        """Whether the zygote of that number is gone. It is seen before its workers are:
        the kernel closes what a process had open, and kills its children only then."""
        held = self._socket
        if held is None or generation != self._generation:
            return True
        poll = select.poll()
        poll.register(held.fileno(), 0)
        return bool(poll.poll(0))  # nobody is at the other end

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self, environment: dict[str, str]) -> None:
        self._end()
        self._generation += 1
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  ourselves
                [sys.executable, "-m", "inference.zygote", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment,
            )

    def _end(self) -> None:
        """It dies with its socket; its workers with it."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


def _file_of(environment: dict[str, str]) -> int:
    """A file in memory, to be read from its beginning: a message on a socket has a limit."""
    descriptor = os.memfd_create("environment")
    with open(descriptor, "wb", closefd=False) as file:
        pickle.dump(environment, file)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


_zygote = _Zygote()
atexit.register(_zygote.close)


async def spawn(
    config: EngineConfig, gpus: Sequence[str] = ()
) -> tuple[WorkerProcess, socket.socket]:
    """A new worker and our end of its socket; neither is left behind if its host is cancelled.

    With `gpus`, by their UUIDs, it sees no others.
    """
    ours, theirs = socket.socketpair()
    words, words_end = os.pipe()

    def fork() -> WorkerProcess:
        try:
            environment = worker_environment(config, gpus)
            timeout_s = config.loading_watchdog_s
            process = _zygote.fork(environment, theirs.fileno(), words_end, timeout_s)
            process.stderr = words
            return process
        finally:
            theirs.close()
            os.close(words_end)

    forking = asyncio.get_running_loop().run_in_executor(None, fork)
    try:
        return await asyncio.shield(forking), ours
    except asyncio.CancelledError:
        forking.add_done_callback(lambda done: _discard(done, words))
        ours.close()
        raise
    except BaseException:
        os.close(words)
        ours.close()
        raise


def _discard(done: "asyncio.Future[WorkerProcess]", words: int) -> None:
    """A worker that nobody waits for any more."""
    os.close(words)
    if done.cancelled() or done.exception() is not None:
        return
    process = done.result()
    process.kill()
    process.close()


async def log_words_of(stderr: int, model: str) -> None:
    """What a worker writes to its standard error becomes log lines, until it ends.

    Read in pieces: a line may be longer than a StreamReader's limit. Nothing of a conversation is in
    it; a worker logs what failed, not what it was asked. Closes the descriptor.
    """
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(stderr, "rb", buffering=0)
    )
    rest = b""
    try:
        while piece := await stream.read(65_536):
            *lines, rest = (rest + piece)[-1_000_000:].split(b"\n")
            for line in lines:
                logger.warning("worker of %s: %s", model, line.decode(errors="replace"))
    finally:
        transport.close()
    if rest:
        logger.warning("worker of %s: %s", model, rest.decode(errors="replace"))


async def bury(process: WorkerProcess) -> None:
    """Kill a worker and see it end, even where its host is cancelled meanwhile."""
    process.kill()
    ended = asyncio.create_task(process.wait())
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        await ended
        raise
    finally:
        process.close()


def worker_environment(config: EngineConfig, gpus: Sequence[str]) -> dict[str, str]:
    """What a worker needs of ours; it needs no secrets.

    One that is to compute on the processor sees no GPUs: transformers puts the parts of a split model on
    whatever accelerator torch finds, and cannot be told otherwise.
    """
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus or config.device == "cpu" else {}
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)} | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])),
        **thread_environment(config.num_threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        # Whoever asks for CUDA in the zygote must not begin it there: no fork survives that.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        **visible,
    }


def thread_environment(num_threads: int) -> dict[str, str]:
    """The room that a process has which computes beside others."""
    return {
        "OMP_NUM_THREADS": str(num_threads),
        "MKL_NUM_THREADS": str(num_threads),
        "OPENBLAS_NUM_THREADS": "1",  # numpy's; its threads start at its import
        # Spinning threads collapse when the web process needs a core: 49 against 104 tok/s measured.
        "GOMP_SPINCOUNT": "0",
    }
