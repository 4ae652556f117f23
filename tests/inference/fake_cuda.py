"""In place of a GPU: what torch does by streams, captures and pools of memory, as far as books go.

`torch.cuda.graph` is torch's own, with its order of steps where the end of a capture fails.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
import torch

Pool = tuple[int, int]


@dataclass(eq=False)
class FakeStream:
    name: str = "own"

    def synchronize(self) -> None:
        pass


@dataclass
class FakeCuda:
    """`launches` are (stream, whether it was captured). `users` counts the graphs of each pool."""

    current: FakeStream = field(default_factory=lambda: FakeStream("default"))
    launches: list[tuple[str, bool]] = field(default_factory=list)
    users: dict[Pool, int] = field(default_factory=dict)
    allocating: list[Pool] = field(default_factory=list)
    mode: int = 0  # of what waits
    num_begun: int = 0
    is_lost: bool = False
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _is_broken: bool = False  # the capture that is under way

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fakes: dict[str, Any] = {
            "Stream": FakeStream,
            "stream": self.stream,
            "current_device": lambda: 0,
            "graph_pool_handle": lambda: (0, next(self._numbers)),
            "CUDAGraph": lambda: FakeGraph(self),
            "synchronize": self.synchronize,
            "get_sync_debug_mode": lambda: self.mode,
            "set_sync_debug_mode": self.set_mode,
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(torch.cuda, name, fake)
        for name, hidden in (
            ("_host_emptyCache", lambda: None),
            ("_cuda_endAllocateToPool", self.end_allocating),
            ("_cuda_releasePool", self.release),
        ):
            monkeypatch.setattr(torch._C, name, hidden, raising=False)

    # --- what work may do -----------------------------------------------------------------------

    def launch(self) -> None:
        self.launches.append((self.current.name, bool(self.allocating)))

    def wait(self, *, is_seen: bool = True) -> None:
        """`is_seen`: torch knows that this waits."""
        if self.mode == 2 and is_seen:
            raise RuntimeError("called a synchronizing CUDA operation")
        if self.allocating:
            self._is_broken = True
            raise torch.AcceleratorError(
                "CUDA error: operation not permitted when stream is capturing"
            )

    # --- torch's --------------------------------------------------------------------------------

    def stream(self, stream: FakeStream) -> "FakeStreamContext":
        return FakeStreamContext(self, stream)

    def synchronize(self) -> None:
        if self.is_lost:
            raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
        self.wait(is_seen=False)

    def set_mode(self, mode: int | str) -> None:
        self.mode = {"default": 0, "warn": 1, "error": 2}.get(str(mode), 0)

    def begin(self, pool: Pool) -> None:
        assert self.users.get(pool, 1) > 0, "use_count > 0"
        assert not self.allocating, "a capture is under way"
        self.users[pool] = self.users.get(pool, 0) + 1
        self.allocating.append(pool)
        self.num_begun += 1

    def end(self, pool: Pool) -> None:
        if self._is_broken:
            self._is_broken = False
            raise torch.AcceleratorError(
                "CUDA error: operation failed due to a previous error during capture"
            )
        self.allocating.remove(pool)

    def end_allocating(self, device: int, pool: Pool) -> None:
        if pool not in self.allocating:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.allocating.remove(pool)

    def release(self, device: int, pool: Pool) -> None:
        self.users[pool] -= 1
        assert self.users[pool] >= 0


@dataclass
class FakeStreamContext:
    """No generator: what is never left would be left when it is collected."""

    cuda: FakeCuda
    stream: FakeStream
    before: FakeStream | None = None

    def __enter__(self) -> None:
        self.before, self.cuda.current = self.cuda.current, self.stream

    def __exit__(self, *args: object) -> None:
        assert self.before is not None
        self.cuda.current = self.before


class FakeGraph:
    """Gives its share of its pool back when nobody has it any more."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self._pool: Pool | None = None
        self._has_ended = False

    def capture_begin(self, pool: Pool, **options: Any) -> None:
        assert options["capture_error_mode"] == "thread_local"
        self._pool = pool
        self._cuda.begin(pool)

    def capture_end(self) -> None:
        assert self._pool is not None
        self._cuda.end(self._pool)
        self._has_ended = True

    def replay(self) -> None:
        assert self._has_ended

    def __del__(self) -> None:
        if self._has_ended and self._pool is not None:
            self._cuda.release(0, self._pool)
