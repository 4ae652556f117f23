"""The Celery worker process, with the beat that starts periodic tasks."""

import logging
import os
import signal
import warnings
from typing import Any

from retrieval.giving_way import give_way
from webapp.servers.launcher import die_with_parent

logger = logging.getLogger(__name__)
NICENESS = 10


def run_worker() -> None:
    """Work until SIGTERM, then finish the tasks at hand."""
    from celery import signals

    from webapp.celery import CHORES, READING, app

    # Everything here is a chore beside somebody's answer, as are the processes that read files.
    os.nice(NICENESS)
    give_way(os.getpid())
    # Its warning about root is about pickle, which we do not accept.
    warnings.filterwarnings("ignore", message="You're running the worker with superuser")
    _silence_stdout()
    pid = os.getpid()

    def follow(**kwargs: Any) -> None:
        die_with_parent(pid, signal.SIGKILL)

    signals.worker_process_init.connect(follow, weak=False)
    signals.beat_embedded_init.connect(follow, weak=False)
    worker = app.Worker(
        concurrency=num_processes(),
        queues=[CHORES, READING],
        beat=True,
        scheduler="celery.beat:Scheduler",  # in memory: our schedule is by the clock
        loglevel="INFO",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    raise SystemExit(worker.exitcode)


def _silence_stdout() -> None:
    """Celery greets and takes leave there; what matters goes to the log."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def num_processes() -> int:
    """Half of the processors: the other half is for answers."""
    return max(1, min(4, len(os.sched_getaffinity(0)) // 2))
