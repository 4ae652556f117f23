"""The process that forks workers: it may die as they may, and nothing outlives the web process."""

import asyncio
import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count, islice
from pathlib import Path

import psutil
import pytest

from inference import Engine, GenerateRequest, SamplingParams, Tokens
from inference.worker_process import WorkerProcess, _Zygote
from tests.inference.conftest import engine_config

PROMPT = tuple(range(5, 45))
_OWNER = """
import asyncio, sys
from pathlib import Path
from inference import Engine, GenerateRequest, SamplingParams
from tests.inference.conftest import engine_config

async def main():
    engine = Engine(engine_config(Path(sys.argv[1])))
    request = GenerateRequest("r", "tiny", (5, 6, 7), SamplingParams(max_tokens=400, ignore_eos=True))
    async for update in engine.generate(request):
        if (pid := engine.worker_pid("tiny")) is not None:
            print(pid, flush=True)

asyncio.run(main())
"""


@pytest.fixture
async def engine(tiny_model: Path) -> AsyncIterator[Engine]:
    running = Engine(engine_config(tiny_model))
    yield running
    await running.close()


def _worker(engine: Engine) -> psutil.Process:
    pid = engine.worker_pid("tiny")
    assert pid is not None
    return psutil.Process(pid)


async def _ids(engine: Engine, *kills: int) -> list[int]:
    """What the engine answers; from so many tokens on its zygote is killed, each but once: tokens of a
    worker that is dead may still be on their way.

    The answer is long: where this process is kept waiting, a short one is over before the kill. It may
    be kept so for longer than any takes, hence `_ids_with`.
    """
    kill_at, killed = list(kills), 0
    params = SamplingParams(max_tokens=400, temperature=0.0, ignore_eos=True)
    ids: list[int] = []
    async for update in engine.generate(GenerateRequest("r", "tiny", PROMPT, params)):
        if isinstance(update, Tokens):
            ids += update.ids
            pid = engine.worker_pid("tiny")
            if kill_at and len(ids) >= kill_at[0] and pid not in (None, killed):
                psutil.Process(pid).parent().kill()
                del kill_at[0]
                killed = pid
    return ids


async def _ids_with(engine: Engine, *kills: int) -> list[int]:
    """As `_ids`, once each of the kills has come while it answered."""
    for _ in range(10):
        before = engine._host("tiny").num_restarts
        ids = await _ids(engine, *kills)
        if engine._host("tiny").num_restarts - before == len(kills):
            return ids
    raise AssertionError("each time the answer was over before its zygote was killed")


async def test_workers_are_forks_of_one_process(tiny_model: Path, engine: Engine) -> None:
    other = Engine(engine_config(tiny_model))
    try:
        assert await _ids(engine) == await _ids(other)
        one, two = _worker(engine), _worker(other)
        assert one.pid != two.pid
        assert one.ppid() == two.ppid() != os.getpid()
        assert (one.name(), one.parent().name()) == ("vitrine-engine", "vitrine-zygote")
    finally:
        await other.close()
    await asyncio.to_thread(two.wait, 30)  # until the zygote has seen it, too


async def test_a_death_of_the_zygote_costs_a_pause_and_not_a_token(engine: Engine) -> None:
    undisturbed = await _ids(engine)
    first = _worker(engine).ppid()
    assert await _ids_with(engine, 20) == undisturbed
    assert _worker(engine).ppid() != first


async def test_no_request_is_blamed_for_the_deaths_of_the_zygote(engine: Engine) -> None:
    undisturbed = await _ids(engine)
    assert await _ids_with(engine, 1, 50, 100) == undisturbed


async def test_a_host_that_is_cancelled_while_a_worker_is_forked_leaves_none(
    tiny_model: Path, engine: Engine
) -> None:
    await _ids(engine)
    zygote = _worker(engine).parent()
    for _ in range(20):
        hasty = Engine(engine_config(tiny_model))
        hasty.load("tiny")
        await asyncio.sleep(0)
        await hasty.close()
    # The zygote forks behind the hosts' backs, and late where the machine is busy.
    alone_since_s = time.monotonic()
    async with asyncio.timeout(60):
        while time.monotonic() - alone_since_s < 2:
            if len(zygote.children()) > 1:
                alone_since_s = time.monotonic()
            await asyncio.sleep(0.05)
    assert [child.pid for child in zygote.children()] == [_worker(engine).pid]


def test_nothing_outlives_its_owner(tiny_model: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tiny_model)], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        worker = psutil.Process(int(owner.stdout.readline()))
        below = [worker, worker.parent()]
        os.kill(owner.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(below, timeout=30)
    assert not alive


def test_a_process_is_watched_by_any_descriptor() -> None:
    """A web process may have thousands of connections, and select() knows 1,024 descriptors."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(few, min(2048, most)), most))
    try:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
            low = os.pidfd_open(child.pid)
            high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1500)
            os.close(low)
            process = WorkerProcess(child.pid, high, stderr=-1)
            assert not process.has_ended
            process.kill()
            asyncio.run(process.wait())
            assert process.has_ended
            process.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


class _Forks:
    """A zygote of the test's own, and workers that end at once, since nobody speaks to them."""

    def __init__(self) -> None:
        self.zygote = _Zygote()
        self.more: dict[str, str] = {}  # for the environments of the workers

    def fork(self, timeout_s: float = 300.0) -> int:
        """The pid of a worker that has ended. Raises OSError."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            environment = {**os.environ, **self.more}
            worker = self.zygote.fork(environment, theirs.fileno(), 2, timeout_s)
        asyncio.run(worker.wait())
        worker.close()
        return worker.pid

    @property
    def process(self) -> psutil.Process:
        assert self.zygote._process is not None
        return psutil.Process(self.zygote._process.pid)


@pytest.fixture
def forks() -> Iterator[_Forks]:
    made = _Forks()
    yield made
    made.zygote.close()


@pytest.mark.parametrize("num_left", [1, 2])
def test_a_fork_that_fails_takes_no_other_worker_with_it(forks: _Forks, num_left: int) -> None:
    """Without a number left for its descriptor, or not even for those that it is to have."""
    forks.fork()
    zygote = forks.process
    few, most = zygote.rlimit(psutil.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir(f"/proc/{zygote.pid}/fd")}
    free = (number for number in count() if number not in taken)
    zygote.rlimit(psutil.RLIMIT_NOFILE, (list(islice(free, num_left + 1))[-1], most))
    with pytest.raises(OSError, match="Too many open files"):
        forks.fork()
    zygote.rlimit(psutil.RLIMIT_NOFILE, (few, most))
    forks.fork()
    assert forks.process == zygote
    assert zygote.num_fds() == len(taken)


def test_an_environment_may_have_any_size(forks: _Forks) -> None:
    """A message on a socket may not: some 200 kB are too long for one."""
    forks.fork()
    zygote = forks.process
    forks.more = {f"LARGE_{number}": "x" * 100_000 for number in range(10)}
    forks.fork()
    assert forks.process == zygote


def test_a_zygote_is_seen_to_end_before_its_workers_do(forks: _Forks) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker = forks.zygote.fork(dict(os.environ), theirs.fileno(), 2, 300.0)
        theirs.close()
        assert not forks.zygote.has_ended(worker.generation)
        forks.process.kill()
        assert ours.recv(1) == b"", "the worker has ended"
        assert forks.zygote.has_ended(worker.generation)
    worker.close()


def test_a_zygote_that_does_not_answer_is_replaced(forks: _Forks) -> None:
    forks.fork()
    stopped = forks.process
    stopped.suspend()
    with pytest.raises(TimeoutError):
        forks.fork(timeout_s=0.2)
    assert not stopped.is_running()
    forks.fork()
    assert forks.process != stopped
