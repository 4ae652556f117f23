"""Work that is captured once and replayed, a launch in place of thousands.

A graph holds addresses and not values: what is captured may read and write only tensors that stay where
they are, and its shapes are those of its bucket, a number of rows that a smaller batch is filled up to.
Graphs hold until something that they read moves: the weights (a sleep, an adapter put in), the pages,
the step's own buffers. Then `drop` them. Source: NVIDIA, CUDA C++ Programming Guide, "CUDA Graphs".
"""

from collections.abc import Callable, Hashable

import torch

Work = Callable[[], None]
Capture = Callable[[Work], Work]
"""Runs the work once and returns its replay, which does the same again without its Python code."""


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


class CudaCapture:
    """Captures on a stream of its own, into one memory pool for all graphs: only one of them runs at a
    time, so the largest, captured first, has room for the others' intermediate results."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Other threads may allocate meanwhile: only this one's calls are forbidden to.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            work()
        return graph.replay
