"""In place of a GPU's stream and graphs: as late as a stream may be, and as blind as a graph is."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LateStream:
    """Runs nothing before somebody waits for it: the host gets as far ahead as it ever can.

    What it has told a step must still be there then, and what a step has drawn is not there before.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Callable[[], None]]] = deque()
        self._num_submitted = 0
        self.most_queued = 0

    def submit(self, work: Callable[[], None]) -> None:
        self._num_submitted += 1
        self._queue.append((self._num_submitted, work))
        self.most_queued = max(self.most_queued, len(self._queue))

    def mark(self) -> "_LateMark":
        return _LateMark(self, self._num_submitted)

    def run_up_to(self, number: int) -> None:
        while self._queue and self._queue[0][0] <= number:
            self._queue.popleft()[1]()


@dataclass(frozen=True)
class _LateMark:
    stream: LateStream
    number: int

    def wait(self) -> None:
        self.stream.run_up_to(self.number)


@dataclass
class _Call:
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: list[Tensor]  # those that are no view of what goes in

    def again(self) -> None:
        found = [t for t in tree_leaves(self.function(*self.args, **self.kwargs)) if _is_tensor(t)]
        for result, new in zip(self.results, found, strict=False):
            result.copy_(new)


@dataclass
class RecordedCalls(TorchDispatchMode):
    """Captures as CUDA does: torch's calls with the very tensors that they had, and none of the Python
    code that made them. A number that this code computed is what it was; a look at a value fails.

    Kernels that torch does not call are not seen: models have to be in a type that none is for."""

    calls: list[_Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        recorded = RecordedCalls()
        with recorded:
            work()
        return recorded.replay

    def forget(self) -> None:
        pass

    def replay(self) -> None:
        for call in self.calls:
            call.again()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in _LOOKS:
            raise RuntimeError(f"{func} looks at a value while a graph is captured")
        out = func(*args, **(kwargs or {}))
        given = {_place(t) for t in tree_leaves((args, kwargs)) if _is_tensor(t)}
        results = [t for t in tree_leaves(out) if _is_tensor(t)]
        own = [] if any(_place(t) in given for t in results) else results
        self.calls.append(_Call(func, args, kwargs or {}, own))
        return out


# Some of them come as they are called, and some as what they are made of.
_LOOKS = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.item.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.equal.default,
}


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
