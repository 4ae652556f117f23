"""What is measured: our engine, and its peers in processes of their own, all asked the same way."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.engine.setting import Setting
from inference import Engine, EngineConfig, EngineError
from inference.cli.jobs import Job, Trace, run_jobs
from inference.config import DTYPES
from inference.worker_process import thread_environment

PEERS = {
    "transformers generate": "bfloat16",
    "transformers continuous batching": "bfloat16",
    "llama.cpp Q8_0": "Q8_0",
    "llama.cpp Q4_0": "Q4_0",
}
"""Peers by name, with the type of their weights."""


class Unavailable(Exception):
    """A system cannot run here; the message says why."""


class System(Protocol):
    """Runs jobs all at once and tells when each token came."""

    name: str
    dtype: str

    @property
    def pid(self) -> int: ...
    def run(self, jobs: Sequence[Job]) -> list[Trace]: ...
    def close(self) -> None: ...


def engine_config(model: Path, dtype: str, setting: Setting, **settings: Any) -> EngineConfig:
    """Nobody guesses ahead: what random weights write repeats itself, and would be guessed right.

    Each step tells at once what it wrote, so that steps can be timed.
    """
    return EngineConfig(
        models_dir=model.parent / "none",
        extra_models=(f"{model.name}={model}",),
        default_model=model.name,
        num_threads=setting.threads,
        max_num_sequences=setting.max_num_sequences,
        max_num_drafting=0,
        gather_s=0.0,
        dtype=dtype,
        **settings,
    )


class Vitrine:
    """Our engine: its worker is a child of this process, as in production.

    Raises Unavailable where the model does not load so.
    """

    def __init__(self, model: Path, dtype: str, setting: Setting, **settings: Any) -> None:
        if dtype not in DTYPES:
            raise Unavailable(f"the engine has no such type of weights, but {', '.join(DTYPES)}")
        self.name = f"vitrine {dtype}"
        self.dtype = dtype
        self.model = model.name
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._start(engine_config(model, dtype, setting, **settings)))

    async def _start(self, config: EngineConfig) -> None:
        self.engine = Engine(config)
        try:
            await run_jobs(self.engine, self.model, [Job((1, 2, 3), 4)])
        except EngineError as error:
            await self.engine.close()
            raise Unavailable(str(error)) from error

    @property
    def pid(self) -> int:
        pid = self.engine.worker_pid(self.model)
        assert pid is not None, "it is loaded"
        return pid

    def run(self, jobs: Sequence[Job]) -> list[Trace]:
        return self.loop.run_until_complete(run_jobs(self.engine, self.model, jobs))

    def close(self) -> None:
        self.loop.run_until_complete(self.engine.close())
        self.loop.close()


@dataclass(slots=True)
class Peer:
    """Another engine in a child process, which speaks lines of JSON (see `peer.py`)."""

    name: str
    dtype: str
    process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, name: str, model: Path, setting: Setting) -> "Peer":
        """Start a peer and wait until it is ready. Raises Unavailable."""
        words = [name, str(model), str(setting.threads), str(setting.max_num_sequences)]
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.peer", *words, str(setting.longest_tokens)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ
            | thread_environment(setting.threads)  # the same room as our worker has
            | {
                "HF_HUB_OFFLINE": "1",
                "TRANSFORMERS_VERBOSITY": "error",
            },
        )
        peer = cls(name, PEERS[name], process)
        if reason := peer._hear().get("unavailable"):
            peer.close()
            raise Unavailable(reason)
        peer.run([Job((1, 2, 3), 4)])  # warm
        return peer

    @property
    def pid(self) -> int:
        return self.process.pid

    def run(self, jobs: Sequence[Job]) -> list[Trace]:
        assert self.process.stdin is not None
        asked = [{"prompt": job.prompt_ids, "num_output": job.num_output} for job in jobs]
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        reply = self._hear()
        return [
            Trace(job, reply["started_s"], token_s)
            for job, token_s in zip(jobs, reply["token_s"], strict=True)
        ]

    def _hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Unavailable(f"it ended with exit code {self.process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
