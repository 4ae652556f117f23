"""Rotary embedding by three numbers: see grid_positions. Imports torch.

Each frequency turns by one of them. Qwen2-VL has a section of the frequencies for each, Qwen3-VL deals
them out in turn, as far as sections go. Where a step has no grid, all of them are the same number, and
this is rotary embedding as any model has it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inference import attention
from inference.errors import ModelRefused


class GridRotary(nn.Module):
    """`own` is transformers' module of the model, whose frequencies are taken."""

    def __init__(self, own: Any, sections: Sequence[int], *, in_turn: bool) -> None:
        super().__init__()
        planes = _planes(len(own.inv_freq), sections, in_turn=in_turn)
        self.scaling: float = own.attention_scaling
        self.inv_freq = nn.Buffer(own.inv_freq.float(), persistent=False)
        self.planes = nn.Buffer(torch.tensor(planes), persistent=False)

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """position_ids: (1, tokens) -> cos and sin, (1, tokens, head_dim) each, of the type of `x`."""
        context = attention.get_context()
        if context is not None and context.planes is not None:
            positions = context.planes.index_select(0, self.planes).T[None]
        else:
            positions = position_ids[..., None]
        angles = positions.float() * self.inv_freq
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos() * self.scaling, angles.sin() * self.scaling
        return cos.to(x.dtype), sin.to(x.dtype)


def _planes(num_frequencies: int, sections: Sequence[int], *, in_turn: bool) -> list[int]:
    """For each frequency which of the three numbers turns it. Raises ModelRefused."""
    if len(sections) != 3 or sum(sections) != num_frequencies:
        raise ModelRefused(
            f"Of its {num_frequencies} frequencies config.json deals out {list(sections)}."
        )
    if not in_turn:
        return [plane for plane, num in enumerate(sections) for _ in range(num)]
    planes = [0] * num_frequencies
    for plane in (1, 2):
        for at in range(plane, min(3 * sections[plane], num_frequencies), 3):
            planes[at] = plane
    return planes
