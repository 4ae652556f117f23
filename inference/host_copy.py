"""A model's weights on the host, while it sleeps and the device is others'. Imports torch.

In pinned memory, which a GPU reads at the speed of its bus; on the processor it is an ordinary copy.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class _Copy:
    """`owner` keeps its identity and its shape is the copy's; its memory is gone."""

    owner: Tensor
    host: Tensor
    device: torch.device


class HostCopy:
    """Made, a model has no weights on the device; `restore` brings them back, as often as wanted."""

    def __init__(self, model: nn.Module) -> None:
        self._copies: list[_Copy] = []
        for tensor in _tensors(model):
            is_pinned = tensor.device.type == "cuda"
            host = torch.empty_like(tensor, device="cpu", pin_memory=is_pinned)
            host.copy_(tensor.detach())
            self._copies.append(_Copy(tensor, host, tensor.device))
        for copy in self._copies:  # only now: a failure above has changed nothing
            copy.owner.data = torch.empty(0, dtype=copy.host.dtype, device=copy.device)

    @property
    def num_bytes(self) -> int:
        return sum(copy.host.nbytes for copy in self._copies)

    def restore(self) -> None:
        """Bring the weights back to where they were. Raises torch.OutOfMemoryError."""
        for copy in self._copies:
            copy.owner.data = torch.empty_like(copy.host, device=copy.device).copy_(
                copy.host, non_blocking=True
            )
        if any(copy.device.type == "cuda" for copy in self._copies):
            torch.cuda.synchronize()


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    """Each of a model's parameters and buffers, once; weights that two layers share are one tensor."""
    seen: set[int] = set()
    for tensor in (*model.parameters(), *model.buffers()):
        if id(tensor) not in seen and tensor.numel():
            seen.add(id(tensor))
            yield tensor
