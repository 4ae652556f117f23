"""Muon for the matrices, AdamW for everything else, on float32 master weights.

Muon replaces each momentum matrix by its nearest orthogonal one. Source: Jordan et al. 2024,
https://kellerjordan.github.io/posts/muon/.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic iteration; from the source above


def orthogonalised(matrices: Tensor, steps: int = 5) -> Tensor:
    """Matrices (count, rows, columns), rows <= columns, with all singular values near 1.

    By Newton-Schulz in bfloat16, many at once: a small matrix alone does not fill a core.
    """
    a, b, c = _COEFFICIENTS
    x = matrices.bfloat16()
    x = x / (torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    made: Tensor = x.float()
    return made


class Optimiser:
    """Updates float32 masters from gradients and keeps the moments.

    `parts` says into how many row blocks a fused matrix falls (q, k, v are orthogonalised apart).
    """

    def __init__(self, masters: Mapping[str, Tensor], parts: Mapping[str, tuple[int, ...]]) -> None:
        self.masters = dict(masters)
        self.parts = dict(parts)
        self.first = {name: torch.zeros_like(weight) for name, weight in masters.items()}
        self.second = {n: torch.zeros_like(w) for n, w in masters.items() if not self._is_matrix(n)}
        self.num_steps = 0

    def _is_matrix(self, name: str) -> bool:
        return self.masters[name].dim() == 2 and name != "embedding"

    @torch.no_grad()
    def step(
        self, grads: Mapping[str, Tensor], *, muon_lr: float, adam_lr: float, decay: float = 0.0
    ) -> None:
        """One update. `grads` are float32 means over the tokens of the step."""
        self.num_steps += 1
        ahead: dict[str, Tensor] = {}
        for name, grad in grads.items():
            if self._is_matrix(name):
                ahead[name] = self._look_ahead(name, grad)
            else:
                self._adam(name, grad, adam_lr)
        self._muon(ahead, muon_lr, decay)

    def _look_ahead(self, name: str, grad: Tensor, momentum: float = 0.95) -> Tensor:
        """Nesterov's momentum."""
        self.first[name].lerp_(grad, 1 - momentum)
        return grad.lerp(self.first[name], momentum)

    def _muon(self, ahead: Mapping[str, Tensor], lr: float, decay: float) -> None:
        """Move each part of each matrix by its orthogonalised momentum, parts of one shape at once."""
        groups: dict[tuple[int, ...], list[tuple[Tensor, Tensor, float]]] = {}
        for name, moment in ahead.items():
            weight = self.masters[name].mul_(1 - lr * decay)
            rows = list(self.parts.get(name.rsplit(".", 1)[-1], (weight.shape[0],)))
            for block, target in zip(
                torch.split(moment, rows), torch.split(weight, rows), strict=True
            ):
                ratio = block.shape[0] / block.shape[1]
                scale = max(1.0, ratio) ** 0.5  # wider outputs take larger steps
                wide = (block, target, scale) if ratio <= 1 else (block.T, target.T, scale)
                groups.setdefault(tuple(wide[0].shape), []).append(wide)
        for parts in groups.values():
            moved = orthogonalised(torch.stack([block for block, _, _ in parts]))
            for update, (_, target, scale) in zip(moved, parts, strict=True):
                target.add_(update, alpha=-lr * scale)

    def _adam(
        self, name: str, grad: Tensor, lr: float, beta1: float = 0.9, beta2: float = 0.95
    ) -> None:
        first, second = self.first[name], self.second[name]
        first.lerp_(grad, 1 - beta1)
        second.lerp_(grad.square(), 1 - beta2)
        corrected = (second / (1 - beta2**self.num_steps)).sqrt_().add_(1e-10)
        self.masters[name].addcdiv_(first / (1 - beta1**self.num_steps), corrected, value=-lr)

    def state(self) -> dict[str, Tensor]:
        """The moments under flat names, for a checkpoint."""
        return {f"first.{n}": t for n, t in self.first.items()} | {
            f"second.{n}": t for n, t in self.second.items()
        }

    def load_state(self, tensors: Mapping[str, Tensor], num_steps: int) -> None:
        self.num_steps = num_steps
        for kind, moments in (("first", self.first), ("second", self.second)):
            for name, moment in moments.items():
                moment.copy_(tensors[f"{kind}.{name}"])
