"""Where a worker computes: on the processor, or on GPUs of its own; each place with a ledger.

Several workers of one model go to different GPUs. Models that are split over several have a group of
GPUs for themselves, so that no worker ever waits for two ledgers at once. Loads no torch: the worker is
told by CUDA_VISIBLE_DEVICES which devices there are for it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from inference.catalog import ModelSpec
from inference.config import ALL_MODELS, EngineConfig
from inference.ledger import Ledger
from inference.needs import measure_budget
from inference.nvml import GpuReading, has_driver, read_gpus
from inference.residency import Residency

_RESERVE_SHARE = 20  # of a GPU's free memory, for what the driver and CUDA take by themselves
ReadGpus = Callable[[], Sequence[GpuReading]]


class Misplaced(Exception):
    """A worker has a GPU, and its model computes on the processor."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """`gpus` are their UUIDs; there are none on the processor."""

    gpus: tuple[str, ...]
    residency: Residency


class Placement:
    """The places of one engine, and which models have workers in each. Lives on the event loop."""

    def __init__(self, config: EngineConfig, read: ReadGpus | None = None) -> None:
        self._config = config
        self._read = read or read_gpus
        self.host = Place((), Residency(Ledger(partial(measure_budget, config))))
        is_sought = config.device != "cpu" and (read is not None or _has_cuda())
        gpus = [gpu.uuid for gpu in self._read()] if is_sought else []
        self._on_gpus = [
            Place(group, Residency(Ledger(partial(self._budget_bytes, group))))
            for group in groups(gpus, [num for _, num in config.tensor_parallel])
        ]
        self._on_host: set[str] = set()
        self._workers: dict[Place, Counter[str]] = {
            place: Counter() for place in (self.host, *self._on_gpus)
        }

    def num_workers(self, spec: ModelSpec) -> int:
        """As configured; else one for each GPU that it may have, or one."""
        is_said = {spec.name, ALL_MODELS} & {name for name, _ in self._config.workers}
        if is_said or spec.kind != "chat":
            return self._config.num_workers(spec.name)
        return max(1, len(self._fitting(spec.name)))

    def choose(self, model: str, *, is_chat: bool) -> Place:
        """For a new worker: where fewest of the same model are, and then fewest of all."""
        fitting = self._fitting(model) if is_chat else []
        if not fitting:
            return self.host
        return min(fitting, key=lambda p: (self._workers[p][model], self._workers[p].total()))

    @contextmanager
    def at(self, place: Place, model: str) -> Iterator[None]:
        """Within, a worker of the model is there."""
        self._workers[place][model] += 1
        try:
            yield
        finally:
            self._workers[place][model] -= 1

    def keep_on_host(self, model: str) -> None:
        """It has turned out that a model computes on the processor."""
        self._on_host.add(model)

    def _fitting(self, model: str) -> list[Place]:
        if model in self._on_host:
            return []
        num_ranks = self._config.num_ranks(model)
        return [place for place in self._on_gpus if len(place.gpus) == num_ranks]

    def _budget_bytes(self, group: Sequence[str]) -> int:
        """What a worker may take of the GPUs of a group together; each gives as much as the others."""
        free = [gpu.free_bytes for gpu in self._read() if gpu.uuid in group]
        if len(free) < len(group):
            return 0  # one of them is gone
        least = min(free)
        return (least - least // _RESERVE_SHARE) * len(group)


def groups(gpus: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Each GPU in one group at most: one group for each size above one, from the end, as long as there
    are so many GPUs; the others alone."""
    left = list(gpus)
    made = []
    for size in sorted({size for size in sizes if size > 1}, reverse=True):
        if size <= len(left):
            made.append(tuple(left[-size:]))
            left = left[:-size]
    return [*((gpu,) for gpu in left), *made]


def computes_on_gpu(config: EngineConfig) -> bool:
    """Whether chat models do, as far as that shows without torch."""
    if config.device != "auto":
        return config.device == "cuda"
    return _has_cuda() and has_driver()


def _has_cuda() -> bool:
    """Whether the torch that workers import was built for CUDA; without importing it."""
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        return False
    return any((Path(torch.origin).parent / "lib").glob("libtorch_cuda*.so"))
