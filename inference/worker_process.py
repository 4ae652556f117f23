"""A worker as an operating system process: spawned, heard, buried."""

import asyncio
import logging
import os
import re
import socket
import sys
from pathlib import Path

from inference.config import EngineConfig

logger = logging.getLogger(__name__)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|_URL$|^VITRINE_MODELS$", flags=re.IGNORECASE)
_ROOT = Path(__file__).resolve().parents[1]


async def spawn(config: EngineConfig) -> tuple[asyncio.subprocess.Process, socket.socket]:
    """A new worker and our end of its socket; neither is left behind if its host is cancelled."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "inference.worker", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                env=_worker_environment(config),
                stderr=asyncio.subprocess.PIPE,
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


async def log_words_of(process: asyncio.subprocess.Process, model: str) -> None:
    """What a worker writes to its standard error becomes log lines, until it ends.

    Read in pieces: a line may be longer than a StreamReader's limit. Nothing of a conversation is in
    it; a worker logs what failed, not what it was asked.
    """
    assert process.stderr is not None
    rest = b""
    while piece := await process.stderr.read(65_536):
        *lines, rest = (rest + piece)[-1_000_000:].split(b"\n")
        for line in lines:
            logger.warning("worker of %s: %s", model, line.decode(errors="replace"))
    if rest:
        logger.warning("worker of %s: %s", model, rest.decode(errors="replace"))


async def bury(process: asyncio.subprocess.Process) -> None:
    """Kill a worker and see it end, even where its host is cancelled meanwhile."""
    if process.returncode is None:
        process.kill()
    ended = asyncio.create_task(process.wait())
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        await ended
        raise


def _worker_environment(config: EngineConfig) -> dict[str, str]:
    """What a worker needs of ours; it needs no secrets."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)} | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])),
        **thread_environment(config.num_threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    }


def thread_environment(num_threads: int) -> dict[str, str]:
    """The room that a process has which computes beside others."""
    return {
        "OMP_NUM_THREADS": str(num_threads),
        "MKL_NUM_THREADS": str(num_threads),
        # Spinning threads collapse when the web process needs a core: 49 against 104 tok/s measured.
        "GOMP_SPINCOUNT": "0",
    }
