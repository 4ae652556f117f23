"""Whole numbers out of packed words, in registers: see `inference.whole_linear.WholeWeight`."""

import triton
import triton.language as tl

from inference.int4 import GROUP

_GROUP: tl.constexpr = tl.constexpr(GROUP)
# A whole number in the last bits of 2**23 is 2**23 and that number: bits and a sum in place of a
# conversion, of which devices do fewer at a time.
_IN_FLOAT: tl.constexpr = tl.constexpr(0x4B000000)
_OF_FLOAT: tl.constexpr = tl.constexpr(8388608.0)


@triton.jit
def _words(words, outputs, groups, num_out, num_groups, BITS: tl.constexpr, IS_EVEN: tl.constexpr):
    """(outputs, groups, BITS); with IS_EVEN, blocks fill the matrix."""
    rows = outputs.to(tl.int64)[:, None] * num_groups + groups[None, :]
    places = words + rows[:, :, None] * BITS + tl.arange(0, BITS)[None, None, :]
    if IS_EVEN:
        found = tl.load(places)
    else:
        is_in = (outputs < num_out)[:, None] & (groups < num_groups)[None, :]
        found = tl.load(places, mask=is_in[:, :, None], other=0)
    return found


@triton.jit
def _factors(factors, outputs, groups, num_out, num_groups, IS_EVEN: tl.constexpr):
    """(outputs, groups)"""
    places = factors + outputs.to(tl.int64)[:, None] * num_groups + groups[None, :]
    if IS_EVEN:
        found = tl.load(places)
    else:
        is_in = (outputs < num_out)[:, None] & (groups < num_groups)[None, :]
        found = tl.load(places, mask=is_in, other=0)
    return found.to(tl.float32)


@triton.jit
def _numbers(words, shifts, BITS: tl.constexpr):
    """Those that begin at these bits of the words, in float32."""
    raw = (words >> shifts) & ((1 << BITS) - 1)
    return (raw | _IN_FLOAT).to(tl.float32, bitcast=True) - (_OF_FLOAT + (1 << (BITS - 1)))


@triton.jit
def _of_groups(
    part,
    factors,
    outputs,
    groups,
    num_out,
    num_groups,
    BITS: tl.constexpr,
    IS_EVEN: tl.constexpr,
):
    """(outputs, groups, BITS) -> (outputs, groups), with 4 bits times their factors."""
    found = tl.sum(part, 2)
    if BITS == 4:
        found *= _factors(factors, outputs, groups, num_out, num_groups, IS_EVEN)
    return found
