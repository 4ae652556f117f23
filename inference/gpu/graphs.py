"""Work that is captured once and replayed, a launch in place of thousands.

A graph holds addresses and not values: what is captured may read and write only tensors that stay where
they are, and its shapes are those of its bucket, a number of rows that a smaller batch is filled up to.
Graphs hold until something that they read moves: the weights (a sleep, an adapter put in), the pages,
the step's own buffers. Then `drop` them. Source: NVIDIA, CUDA C++ Programming Guide, "CUDA Graphs".
"""

import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

Work = Callable[[], None]


class Capture(Protocol):
    def __call__(self, work: Work) -> Work:
        """Runs the work and returns its replay, which does the same again without its Python code."""
        ...

    def forget(self) -> None:
        """Nobody has any of the replays any more."""
        ...


def buckets_up_to(most: int) -> list[int]:
    """1, 2, 4, 8 and then each eighth, so that few rows are computed for nothing, and `most`."""
    sizes = [1, 2, 4, *range(8, most, 8), most]
    return sorted({size for size in sizes if size <= most})


class Graphs:
    """Replays what is captured, and calls what is not."""

    def __init__(self, capture: Capture | None = None) -> None:
        self._capture = capture
        self._replays: dict[Hashable, Work] = {}

    @property
    def is_capturing(self) -> bool:
        return self._capture is not None

    def capture(self, key: Hashable, work: Work) -> None:
        """Nothing is captured where nothing can be. Runs the work twice at least: it may change nothing
        that is not overwritten."""
        if self._capture is not None:
            work()  # what is made or compiled at the first time is not to be in the graph
            self._replays[key] = self._capture(work)

    def run(self, key: Hashable, work: Work) -> None:
        self._replays.get(key, work)()

    def __len__(self) -> int:
        return len(self._replays)

    def drop(self) -> None:
        self._replays.clear()
        if self._capture is not None:
            self._capture.forget()


class CudaCapture:
    """Captures on a stream of its own, into one memory pool for all graphs: only one of them runs at a
    time, so the largest, captured first, has room for the others' intermediate results."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()

    def forget(self) -> None:
        """torch takes no pool again whose graphs are gone."""
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Around torch's own, which leaves its stream current where the end of a capture fails.
        with torch.cuda.stream(self._stream):
            self._rehearse(work)
            try:
                # Other threads may allocate meanwhile: only this one's calls are forbidden to.
                with torch.cuda.graph(
                    graph, self._pool, self._stream, capture_error_mode="thread_local"
                ):
                    work()
            except Exception:
                self._end_allocating()
                raise
        return graph.replay

    def _rehearse(self, work: Work) -> None:
        """Run it on the stream of captures, which has cuBLAS's workspaces then, outside of the pool.

        What waits for the device raises here, where nothing is lost by it, rather than in a capture,
        whose failure torch does not tidy up.
        """
        try:
            with _no_waiting():
                work()
        finally:
            self._stream.synchronize()  # others use what it writes, on their own stream

    def _end_allocating(self) -> None:
        """Where the end of a capture fails, torch's allocator thinks that it goes on, and the graph
        never gives its share of the pool back."""
        where = torch.cuda.current_device(), self._pool
        if _has_done("_cuda_endAllocateToPool", *where):
            _has_done("_cuda_releasePool", *where)
        self.forget()


@contextmanager
def _no_waiting() -> Iterator[None]:
    """Within, what waits for the device raises, where torch sees it."""
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Synchronization debug mode")  # a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def _has_done(name: str, *args: Any) -> bool:
    """Call a function that torch keeps to itself: it may be missing, or have nothing to do."""
    try:
        getattr(torch._C, name)(*args)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True
