"""The kernels that draw: they read a row's logits once, by several programs, and write hardly anything.

Each program reads a part of a row and keeps its best token, by logit or by logit with noise; a second
launch joins the parts. Where few candidates may come, the first one also writes the largest value of
each chunk of neighbours: the NUM_CANDIDATES largest values are in as many chunks, those with the largest
maxima, for whatever stands in another has so many before it. So no whole row is ever sorted, and no
shape depends on a value. Rules and noise are those of `inference.sampler`, in the same precision.
Sources: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Alabi et al. 2012,
"Fast k-selection algorithms for graphics processing units", whose radix select is here one bit wide.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inference.gpu.sampling import Knobs, Tier
from inference.sampler import NUM_CANDIDATES

_CHUNK = 32  # neighbours: with chunks of sqrt(vocabulary / candidates) the least is read again
_BLOCK = 1024  # tokens that a program has in its registers
_MOST_SPLITS = 256
_NUM_PROGRAMS = 4096  # enough for the last ones to keep no GPU waiting
_AT_ONCE = 32  # candidates that each candidate is compared with
_MANY_WARPS = 16  # for a row that one program has in its registers
_OPEN: tl.constexpr = tl.constexpr(int(Tier.OPEN))
_NARROW: tl.constexpr = tl.constexpr(int(Tier.NARROW))
_LAST: tl.constexpr = tl.constexpr(2**31 - 1)
_NO_KEY: tl.constexpr = tl.constexpr(-(2**63))


@triton.jit
def _mix(h):
    """murmur3's 32-bit finalizer, of uint32."""
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    return h ^ (h >> 16)


@triton.jit
def _noise_key(seed, position):
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    return _mix(_mix(low) ^ _mix(high ^ 0x9E3779B9) ^ _mix(position.to(tl.uint32) * 0x85EBCA6B))


@triton.jit
def _gumbel(key, ids):
    """As `sampler.gumbel_noise`, whose logarithms are in double precision, too."""
    bits = _mix(key ^ _mix(ids.to(tl.uint32) * 0xC2B2AE35 + 1))
    uniform = (bits.to(tl.float64) + 0.5) * (1.0 / 2**32)
    return -tl.log(-tl.log(uniform)).to(tl.float32)


@triton.jit
def _scaled(logits, temperature):
    """Rounded as by torch: the plain division of Triton is an approximation."""
    return tl.div_rn(logits, tl.maximum(temperature, 1e-5))


@triton.jit(do_not_specialize=["num_splits", "blocks_per_split"])
def _read_part(
    logits,
    positions,
    temperatures,
    seeds,
    tiers,
    sums,
    values,
    ids,
    peaks,
    totals,
    maxima,
    row_stride,
    num_splits,
    blocks_per_split,
    SIZE: tl.constexpr,
    HAS_NARROW: tl.constexpr,
    CHUNK: tl.constexpr,
    NUM_CHUNKS: tl.constexpr,
    CHUNKS: tl.constexpr,
):
    """Grid: (rows, splits). What is no number counts as the largest of all, and its id is BROKEN."""
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    tier = tl.load(tiers + row)
    temperature = tl.load(temperatures + row)
    key = _noise_key(tl.load(seeds + row), tl.load(positions + row))
    chunks = tl.arange(0, CHUNKS)
    places = chunks[:, None] * CHUNK + tl.arange(0, CHUNK)[None, :]
    start = split * blocks_per_split * CHUNKS * CHUNK
    end = tl.minimum(start + blocks_per_split * CHUNKS * CHUNK, SIZE)

    best_sums = tl.full([CHUNKS, CHUNK], float("-inf"), tl.float32)
    best_values = best_sums
    best_ids = start + places
    if HAS_NARROW:
        peak = tl.full([CHUNKS], float("-inf"), tl.float32)
        total = tl.zeros([CHUNKS, CHUNK], tl.float32)
    for at in range(start, end, CHUNKS * CHUNK):
        here = at + places
        raw = tl.load(logits + row * row_stride + here, mask=here < SIZE, other=float("-inf"))
        raw = raw.to(tl.float32)
        value = raw
        rated = raw
        if tier == _OPEN:
            value = _scaled(raw, temperature)
            rated = value + _gumbel(key, here)
        is_broken = raw != raw
        value = tl.where(is_broken, float("inf"), value)
        rated = tl.where(is_broken, float("inf"), rated)
        # Of an equal sum the likeliest is drawn, and of those the first, which is here already.
        is_better = (rated > best_sums) | ((rated == best_sums) & (value > best_values))
        is_better |= is_broken
        best_sums = tl.where(is_better, rated, best_sums)
        best_values = tl.where(is_better, value, best_values)
        best_ids = tl.where(is_better, tl.where(is_broken, -1, here), best_ids)
        if HAS_NARROW:  # noqa: SIM102 - this the compiler knows, the next the device
            if tier == _NARROW:
                value = _scaled(raw, temperature)
                of_chunk = tl.max(value, 1)
                number = at // CHUNK + chunks
                target = maxima + row * NUM_CHUNKS + number
                tl.store(target, of_chunk, mask=number < NUM_CHUNKS)
                new_peak = tl.maximum(peak, of_chunk)
                base = tl.where(tl.abs(new_peak) == float("inf"), 0.0, new_peak)
                total = total * tl.exp(peak - base)[:, None] + tl.exp(value - base[:, None])
                peak = new_peak

    target = row * num_splits + split
    best = tl.max(best_sums)
    best_values = tl.where(best_sums == best, best_values, float("-inf"))
    value = tl.max(best_values)
    is_best = (best_sums == best) & (best_values == value)
    tl.store(sums + target, best)
    tl.store(values + target, value)
    tl.store(ids + target, tl.min(tl.where(is_best, best_ids, _LAST)))
    if HAS_NARROW:
        highest = tl.max(peak)
        base = tl.where(tl.abs(highest) == float("inf"), 0.0, highest)
        tl.store(peaks + target, highest)
        tl.store(totals + target, tl.sum(total * tl.exp(peak - base)[:, None]))


@triton.jit(do_not_specialize=["num_splits"])
def _join(sums, values, ids, drawn, num_splits, SPLITS: tl.constexpr):
    """Grid: (rows,)."""
    row = tl.program_id(0).to(tl.int64)
    splits = tl.arange(0, SPLITS)
    is_in = splits < num_splits
    place = row * num_splits + splits
    of_part = tl.load(sums + place, mask=is_in, other=float("-inf"))
    is_best = is_in & (of_part == tl.max(of_part))
    value = tl.load(values + place, mask=is_best, other=float("-inf"))
    is_best &= value == tl.max(value)
    tl.store(drawn + row, tl.min(tl.load(ids + place, mask=is_best, other=_LAST)).to(tl.int64))


@triton.jit
def _keys(values, numbers, is_in):
    """Value and number as one: the larger value is the larger key, of equals the lower number."""
    bits = tl.where(values == 0.0, 0.0, values).to(tl.int32, bitcast=True)  # -0.0 is 0.0
    rising = tl.where(bits < 0, bits ^ _LAST, bits).to(tl.int64)
    return tl.where(is_in, (rising << 32) | (numbers ^ _LAST).to(tl.int64), _NO_KEY)


@triton.jit
def _number(keys):
    return (keys & _LAST).to(tl.int32) ^ _LAST


@triton.jit
def _value(keys):
    rising = (keys >> 32).to(tl.int32)
    return tl.where(rising < 0, rising ^ _LAST, rising).to(tl.float32, bitcast=True)


@triton.jit
def _store_largest(keys, target, NUM: tl.constexpr):
    """The NUM largest, in the order in which they come. No two are equal, but for what is no key."""
    limit = tl.full([], _NO_KEY, tl.int64)
    bit = tl.full([], 63, tl.int64)
    count = tl.full([], -1, tl.int32)
    while (bit >= 0) & (count != NUM):
        higher = limit ^ (tl.full([], 1, tl.int64) << bit)  # the first bit is the sign
        num = tl.sum((keys >= higher).to(tl.int32))
        limit = tl.where(num >= NUM, higher, limit)
        count = tl.where(num >= NUM, num, count)
        bit -= 1
    is_large = keys >= limit
    tl.store(target + tl.cumsum(is_large.to(tl.int32), 0) - 1, keys, mask=is_large)


@triton.jit
def _choose_chunks(
    maxima, tiers, drawn, chosen, SIZE: tl.constexpr, NUM: tl.constexpr, PADDED: tl.constexpr
):
    """Grid: (rows,). Of SIZE maxima the NUM largest."""
    row = tl.program_id(0).to(tl.int64)
    if (tl.load(tiers + row) == _NARROW) & (tl.load(drawn + row) >= 0):
        chunks = tl.arange(0, PADDED)
        is_in = chunks < SIZE
        values = tl.load(maxima + row * SIZE + chunks, mask=is_in, other=0.0)
        _store_largest(_keys(values, chunks, is_in), chosen + row * NUM, NUM)


@triton.jit
def _choose_tokens(
    logits,
    temperatures,
    tiers,
    drawn,
    chosen,
    candidates,
    row_stride,
    SIZE: tl.constexpr,
    NUM: tl.constexpr,
    CHUNK: tl.constexpr,
    NUM_CHOSEN: tl.constexpr,
    PADDED: tl.constexpr,
):
    """Grid: (rows,). Of the tokens in NUM_CHOSEN chunks the NUM largest."""
    row = tl.program_id(0).to(tl.int64)
    if (tl.load(tiers + row) == _NARROW) & (tl.load(drawn + row) >= 0):
        places = tl.arange(0, PADDED)
        is_in = places < NUM_CHOSEN * CHUNK
        chunk = _number(tl.load(chosen + row * NUM_CHOSEN + places // CHUNK, mask=is_in, other=0))
        ids = chunk * CHUNK + places % CHUNK
        is_in &= ids < SIZE
        values = tl.load(logits + row * row_stride + ids, mask=is_in, other=0.0).to(tl.float32)
        values = _scaled(values, tl.load(temperatures + row))
        _store_largest(_keys(values, ids, is_in), candidates + row * NUM, NUM)


@triton.jit
def _prob(keys, total):
    """Rounded from double precision: the plain exp of float32 is an approximation."""
    return tl.exp((_value(keys) - total).to(tl.float64)).to(tl.float32)


@triton.jit(do_not_specialize=["num_splits"])
def _draw_candidate(
    candidates,
    peaks,
    totals,
    positions,
    top_ps,
    min_ps,
    top_ks,
    seeds,
    tiers,
    drawn,
    num_splits,
    NUM: tl.constexpr,
    PADDED: tl.constexpr,
    AT_ONCE: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """Grid: (rows,). By the rule of `sampling._filtered`; ranks are counted, so nothing is sorted."""
    row = tl.program_id(0).to(tl.int64)
    if (tl.load(tiers + row) == _NARROW) & (tl.load(drawn + row) >= 0):
        splits = tl.arange(0, SPLITS)
        place = row * num_splits + splits
        of_part = tl.load(peaks + place, mask=splits < num_splits, other=float("-inf"))
        peak = tl.max(of_part)
        base = tl.where(tl.abs(peak) == float("inf"), 0.0, peak)
        mass = tl.load(totals + place, mask=splits < num_splits, other=0.0).to(tl.float64)
        mass *= tl.exp((of_part - base).to(tl.float64))
        total = (base + tl.log(tl.sum(mass))).to(tl.float32)

        places = tl.arange(0, PADDED)
        is_in = places < NUM
        keys = tl.load(candidates + row * NUM + places, mask=is_in, other=_NO_KEY)
        probs = tl.where(is_in, _prob(keys, total), 0.0)
        rank = tl.zeros([PADDED], tl.int32)
        mass_up_to = tl.zeros([PADDED], tl.float64)
        for at in range(0, NUM, AT_ONCE):
            others = at + tl.arange(0, AT_ONCE)
            is_other = others < NUM
            other = tl.load(candidates + row * NUM + others, mask=is_other, other=_NO_KEY)
            other_probs = tl.where(is_other, _prob(other, total), 0.0).to(tl.float64)
            is_before = other[None, :] > keys[:, None]
            rank += tl.sum(is_before.to(tl.int32), 1)
            is_up_to = is_before | (other[None, :] == keys[:, None])
            mass_up_to += tl.sum(tl.where(is_up_to, other_probs[None, :], 0.0), 1)
        mass_before = mass_up_to.to(tl.float32) - probs
        top_prob = tl.sum(tl.where(rank == 0, probs, 0.0))
        top_k = tl.load(top_ks + row)
        is_kept = is_in & (rank < tl.where(top_k > 0, top_k, NUM))
        mass = tl.max(tl.where(is_kept, mass_up_to, 0.0)).to(tl.float32)
        top_p = tl.load(top_ps + row)
        most_before = tl.where(top_p < 1.0, top_p * mass, float("inf"))
        keep = is_kept & (mass_before < most_before)
        keep &= probs >= tl.load(min_ps + row) * top_prob
        keep |= rank == 0  # the most likely token always survives
        ids = _number(keys)
        key = _noise_key(tl.load(seeds + row), tl.load(positions + row))
        rated = tl.where(keep & is_in, _value(keys) + _gumbel(key, ids), float("-inf"))
        is_best = is_in & (rated == tl.max(rated))
        is_best &= rank == tl.min(tl.where(is_best, rank, PADDED))
        tl.store(drawn + row, tl.max(tl.where(is_best, ids, -1)).to(tl.int64))


def draw(logits: Tensor, positions: Tensor, knobs: Knobs, tier: Tier) -> Tensor:
    """As `sampling.draw`, but rows of the tier WIDE get the most likely token."""
    num_rows, size = logits.shape
    drawn = logits.new_empty(num_rows, dtype=torch.int64)
    if num_rows == 0:
        return drawn
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    positions = positions.contiguous()
    temperature, top_p, min_p, top_k, seed, tiers = (each.contiguous() for each in knobs.tensors)
    num_blocks = triton.cdiv(size, _BLOCK)
    wanted = min(num_blocks, _MOST_SPLITS, max(1, _NUM_PROGRAMS // num_rows))
    blocks_per_split = triton.cdiv(num_blocks, wanted)
    num_splits = triton.cdiv(num_blocks, blocks_per_split)
    shape = (num_rows, num_splits)
    # Tensors of their own, which lie where Triton needs no other kernel for them.
    sums, values, peaks, totals = (logits.new_empty(shape, dtype=torch.float32) for _ in range(4))
    ids = logits.new_empty(shape, dtype=torch.int32)
    num_chunks = triton.cdiv(size, _CHUNK)
    has_narrow = Tier.NARROW in tier
    maxima = sums.new_empty((num_rows, num_chunks)) if has_narrow else sums
    _read_part[(num_rows, num_splits)](
        logits,
        positions,
        temperature,
        seed,
        tiers,
        sums,
        values,
        ids,
        peaks,
        totals,
        maxima,
        logits.stride(0),
        num_splits,
        blocks_per_split,
        SIZE=size,
        HAS_NARROW=has_narrow,
        CHUNK=_CHUNK,
        NUM_CHUNKS=num_chunks,
        CHUNKS=_BLOCK // _CHUNK,
    )
    _join[(num_rows,)](sums, values, ids, drawn, num_splits, SPLITS=_MOST_SPLITS)
    if has_narrow:
        num = min(NUM_CANDIDATES, size)
        num_chosen = min(num, num_chunks)
        chosen = drawn.new_empty((num_rows, num_chosen))
        candidates = drawn.new_empty((num_rows, num))
        _choose_chunks[(num_rows,)](
            maxima,
            tiers,
            drawn,
            chosen,
            SIZE=num_chunks,
            NUM=num_chosen,
            PADDED=triton.next_power_of_2(num_chunks),
            num_warps=_MANY_WARPS,
        )
        _choose_tokens[(num_rows,)](
            logits,
            temperature,
            tiers,
            drawn,
            chosen,
            candidates,
            logits.stride(0),
            SIZE=size,
            NUM=num,
            CHUNK=_CHUNK,
            NUM_CHOSEN=num_chosen,
            PADDED=triton.next_power_of_2(num_chosen * _CHUNK),
            num_warps=_MANY_WARPS,
        )
        _draw_candidate[(num_rows,)](
            candidates,
            peaks,
            totals,
            positions,
            top_p,
            min_p,
            top_k,
            seed,
            tiers,
            drawn,
            num_splits,
            NUM=num,
            PADDED=triton.next_power_of_2(num),
            AT_ONCE=_AT_ONCE,
            SPLITS=_MOST_SPLITS,
            num_warps=8,
        )
    return drawn
