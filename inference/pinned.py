"""Numbers of the host on their way to a device, from where a GPU fetches them by itself. Imports torch.

From pageable memory a copy waits for all that the device was told before. torch keeps pinned memory for
later, but for what is still being copied.
"""

import torch
from torch import Tensor


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """One of the host's as the device likes to fetch it: in one piece, or it goes by a pageable copy."""
    return tensor.contiguous().pin_memory() if device.type == "cuda" else tensor


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The same on the device, behind what it was told before; nobody waits for it."""
    return pinned(tensor, device).to(device, non_blocking=device.type == "cuda")
