"""The compiled kernels as Python calls them: by addresses, one call at a time."""

import ctypes
import logging
from ctypes import CDLL, POINTER, Structure, c_float, c_int, c_int64, c_void_p
from functools import cache
from pathlib import Path

import torch

from inference.native.build import built_library

logger = logging.getLogger(__name__)
TYPES = {torch.float32: 0, torch.bfloat16: 1}  # as in simd.h


class Weight(Structure):
    """`Weight` of linear.c."""

    _fields_ = [
        *((name, c_void_p) for name in ("tiles", "factors", "scales", "shifts", "bias")),
        *((name, c_int64) for name in ("num_outputs", "num_inputs", "padded_inputs")),
    ]


class Attention(Structure):
    """`Attention` of attention.c."""

    _fields_ = [
        *((name, c_void_p) for name in ("query", "key", "value", "out")),
        *(
            (f"{name}_{axis}", c_int64)
            for name in ("query", "key", "value")
            for axis in ("head", "token")
        ),
        *((name, c_int64) for name in ("num_heads", "num_kv_heads", "dim", "value_dim", "window")),
        ("scale", c_float),
        ("type", c_int),
    ]


class Layer(Structure):
    """`Layer` of layer.c."""

    _fields_ = [
        *((name, c_void_p) for name in ("projections", "output", "gates", "down")),
        *((name, c_void_p) for name in ("norm", "second_norm", "query_norm", "key_norm")),
        *(
            (name, c_int64)
            for name in ("number", "width", "num_heads", "num_kv_heads", "dim", "inner")
        ),
        *((f"{name}epsilon", c_float) for name in ("", "second_", "query_", "key_")),
        ("scale", c_float),
        ("type", c_int),
    ]


class Up(Structure):
    """`Up` of low_rank.c."""

    _fields_ = [
        ("weight", c_void_p),
        *((name, c_int64) for name in ("first_rank", "rank", "first_output", "num_outputs")),
    ]


class LowRank(Structure):
    """`LowRank` of low_rank.c."""

    _fields_ = [
        ("down", c_void_p),
        ("ups", POINTER(Up)),
        *((name, c_int64) for name in ("num_inputs", "num_ranks", "num_ups")),
        ("type", c_int),
    ]


_SIGNATURES = {
    "most_tokens": (c_int, c_int64, c_int64),
    "attend": (c_void_p, c_void_p, c_int64, c_int),
    "rms_norm": (c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_float, c_int, c_int),
    "silu_mul": (c_void_p, c_void_p, c_int64, c_int64, c_int, c_int),
    "rotate": (
        *(c_void_p, c_int64, c_int64, c_void_p, c_void_p),
        *(c_void_p, c_int64, c_int64, c_int64, c_int, c_int),
    ),
    "largest": (c_void_p, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_int),
    "log_totals": (c_void_p, c_int64, c_int64, c_void_p, c_int),
    "candidates": (c_void_p, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_int),
    "draw_among_all": (
        *(c_void_p, c_int64, c_int64),
        *(c_void_p, c_void_p, c_void_p, c_int),
    ),
    "begin": (c_int,),
    "has_vnni": (),
    "pack": (c_void_p, c_void_p),
    "pack_halves": (c_void_p, c_void_p),
    "add_low_rank": (
        *(c_void_p, c_void_p, c_int64, c_int64, c_int),
        *(c_void_p, c_int64, c_int, c_int),
    ),
    "linear": (*(c_void_p, c_void_p, c_int64, c_int64, c_int), *(c_void_p, c_int, c_int)),
    "has_plain_linear": (),
    "plain_linear": (
        *(c_void_p, c_void_p, c_void_p, c_int64, c_void_p),
        *(c_int64, c_int64, c_int64, c_int),
    ),
    "decode_layer": (
        *(c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p),
        *(c_void_p, c_int64, c_int),
    ),
}


@cache
def kernels() -> CDLL | None:
    """The library, ready for use; None where it cannot be built or does not run."""
    path = built_library()
    if path is None:
        return None
    try:
        ctypes.CDLL(
            _openmp(), mode=ctypes.RTLD_GLOBAL
        )  # its symbols are to be found by our library
        library = CDLL(str(path))
    except OSError as error:
        logger.info("our kernels do not run here: %s", error)
        return None
    for name, types in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes = types
    library.begin(1)
    return library


def _openmp() -> str:
    """The OpenMP library that torch has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "libgomp" in path:
            return path
    return "libgomp.so.1"
