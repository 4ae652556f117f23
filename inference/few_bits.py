"""Which few bits a model's linear layers get on a GPU: those that were asked for, or the nearest that
are right there. Imports torch.

int4 are whole numbers, with an lm_head of int8. Of 8 bits, fp8 computes twice as much as bfloat16, and
needs a device that multiplies it (compute capability 8.9); int8 has the same memory on any, and products
in bfloat16.
"""

import logging
from functools import partial
from typing import Literal

import torch
from torch import nn

from inference import fp8, int8, whole_linear
from inference.device import free_bytes
from inference.fp8 import Fp8Linear
from inference.whole_linear import WholeLinear

logger = logging.getLogger(__name__)
Kind = Literal["int4", "int8", "fp8"]
_ON_GPU: dict[Kind, tuple[Kind, ...]] = {
    "int4": ("int4", "fp8", "int8"),
    "int8": ("fp8", "int8"),
    "fp8": ("fp8", "int8"),
}

_PIECE_BYTES = 2**30  # of a piece in float32, several times


def quantize_for(name: str, model: nn.Module, asked: Kind, device: torch.device) -> Kind | None:
    """Give a model that is on the host the kind of weights that its device multiplies right, layer by
    layer; returns which, None where there is none and the model stays as it is.

    The log says what was tried, and what a model has got in place of what was asked for. On a processor
    there is fp8 only: it is to measure its loss.
    """
    for kind in _ON_GPU[asked] if device.type != "cpu" else ("fp8",):
        if problem := _problem_on(device, kind):
            level = logging.WARNING if kind == asked else logging.INFO
            logger.log(level, "%s has no products of %s: %s", name, kind, problem)
            continue
        if kind != asked:
            logger.warning("%s gets %s on this device, not %s", name, kind, asked)
        _quantize(model, kind, device)
        return kind
    return None


def _problem_on(device: torch.device, kind: Kind) -> str:
    if kind == "fp8":
        return fp8.problem_on(device)
    of_8_bits = whole_linear.problem_on(device, 8)
    return of_8_bits or (whole_linear.problem_on(device, 4) if kind == "int4" else "")


def _quantize(model: nn.Module, kind: Kind, device: torch.device) -> None:
    if kind == "fp8":
        int8.quantize(model, make=Fp8Linear, fits=fp8.fits)
        return
    # By the device, which is much quicker at it, in pieces: it never holds the layers in 16 bits.
    at = device if free_bytes(device) >= _PIECE_BYTES else None
    head = partial(WholeLinear, bits=8, at=at)
    make = partial(WholeLinear, bits=4, at=at) if kind == "int4" else head
    int8.quantize(model, make=make, make_head=head)
