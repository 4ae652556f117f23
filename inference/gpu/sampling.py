"""Draws a token for each row where the logits are, and waits for nothing: the host need not look.

By the rules and with the noise of `inference.sampler`, so that a seed draws the same tokens on either.
What a step has to compute is known from its requests alone, not from what the logits turn out to be:
that is its tier, and a CUDA graph may hold it. On GPUs the kernels of `inference.gpu.drawing` draw, but
for rows that need all tokens in order.
"""

import logging
from collections.abc import Callable
from collections.abc import Sequence as Rows
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from typing import Any

import torch
from torch import Tensor

from inference.messages import SamplingParams
from inference.out_of_memory import is_fault
from inference.sampler import NUM_CANDIDATES, gumbel_noise, torchs_log_total

logger = logging.getLogger(__name__)
BROKEN = -1  # drawn where the logits are no numbers
_ROWS_AT_ONCE = 64  # in 64 bits, with a vocabulary of 150,000: 75 MiB a tensor
_ID_BITS = 32
_LAST_ID = 2**_ID_BITS - 1
_TRIALS: tuple[dict[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.9},
    {"temperature": 0.9, "top_k": 20, "top_p": 0.9},
    {"temperature": 2.0, "top_k": NUM_CANDIDATES, "min_p": 0.01},
    {"temperature": 0.9},
)


class Tier(IntFlag):
    """What the rows of a step need beside the most likely token; several where they differ."""

    GREEDY = 0
    OPEN = 1  # all tokens may come: nothing is sorted
    NARROW = 2  # no more than NUM_CANDIDATES
    WIDE = 4  # whatever a filter by probability leaves: all are sorted

    @classmethod
    def of(cls, params: SamplingParams) -> "Tier":
        if params.temperature <= 0:
            return cls.GREEDY
        if 0 < params.top_k <= NUM_CANDIDATES:
            return cls.NARROW
        is_open = params.top_k <= 0 and params.top_p >= 1 and params.min_p <= 0
        return cls.OPEN if is_open else cls.WIDE


@dataclass(frozen=True, slots=True)
class Knobs:
    """`SamplingParams` of many rows, (rows,) each, on the logits' device. `tier` is each row's own."""

    temperature: Tensor  # float32, like the next two
    top_p: Tensor
    min_p: Tensor
    top_k: Tensor  # int64, like the rest
    seed: Tensor
    tier: Tensor

    @classmethod
    def empty(cls, num_rows: int, device: torch.device) -> "Knobs":
        reals = (torch.zeros(num_rows, device=device) for _ in range(3))
        integers = (torch.zeros(num_rows, dtype=torch.int64, device=device) for _ in range(3))
        return cls(*reals, *integers)

    @classmethod
    def of(cls, params: Rows[SamplingParams], device: torch.device | None = None) -> "Knobs":
        reals = torch.tensor([(p.temperature, p.top_p, p.min_p) for p in params], device=device)
        whole = [(p.top_k, p.seed, int(Tier.of(p))) for p in params]
        integers = torch.tensor(whole, dtype=torch.int64, device=device)
        return cls(*reals.reshape(-1, 3).unbind(1), *integers.reshape(-1, 3).unbind(1))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.temperature, self.top_p, self.min_p, self.top_k, self.seed, self.tier

    def take(self, rows: Tensor) -> "Knobs":
        return Knobs(*(tensor.index_select(0, rows) for tensor in self.tensors))

    def split(self, num_rows: int) -> "list[Knobs]":
        parts = (tensor.split(num_rows) for tensor in self.tensors)
        return [Knobs(*own) for own in zip(*parts, strict=True)]


Draw = Callable[[Tensor, Tensor, Knobs, Tier], Tensor]


def tier_of(params: Rows[SamplingParams]) -> Tier:
    """That of a step with such rows."""
    tier = Tier.GREEDY
    for own in params:
        tier |= Tier.of(own)
    return tier


def sample(logits: Tensor, params: Rows[SamplingParams], positions: Rows[int]) -> list[int]:
    """`inference.sampler.sample` for logits on a device. Waits; what is BROKEN becomes any token."""
    knobs = Knobs.of(params, logits.device)
    where = torch.tensor(list(positions), device=logits.device)
    ids: list[int] = draw(logits, where, knobs, tier_of(params)).clamp_min(0).tolist()
    return ids


def draw(logits: Tensor, positions: Tensor, knobs: Knobs, tier: Tier) -> Tensor:
    """One id per row, BROKEN where one of its logits is NaN. logits: (rows, vocab), positions: (rows,)
    of the tokens that are drawn -> (rows,) int64. `tier` has all that any of the rows needs."""
    kernels = _kernels_for(logits)
    if kernels is None:
        return draw_by_operations(logits, positions, knobs, tier)
    ids = kernels(logits, positions, knobs, tier)
    if Tier.WIDE in tier:
        drawn = _draw_in_parts(logits, positions, knobs, ids, Tier.WIDE)
        ids = torch.where(ids == BROKEN, BROKEN, drawn)
    return ids


def draw_by_operations(logits: Tensor, positions: Tensor, knobs: Knobs, tier: Tier) -> Tensor:
    """The same where there are no kernels, in many passes over the vocabulary."""
    largest, ids = logits.max(dim=-1)
    if tier:
        ids = _draw_in_parts(logits, positions, knobs, ids, tier)
    return torch.where(largest.isnan(), BROKEN, ids)


def _kernels_for(logits: Tensor) -> Draw | None:
    if not logits.is_cuda:
        return None
    return _checked_kernels(logits.device, logits.dtype, logits.shape[1])


@cache
def _checked_kernels(device: torch.device, dtype: torch.dtype, vocab_size: int) -> Draw | None:
    """Where they draw what the operations draw. Compiles all that rows of such logits need, and waits:
    it is to be asked for once before a graph is captured."""
    try:
        from inference.gpu import drawing  # fails where there is no triton

        is_same = _is_same(drawing.draw, device, dtype, vocab_size)
        problem = "" if is_same else "they draw other tokens"
    except Exception as error:  # no triton, no compiler, no room on the device: all the same
        if is_fault(error):
            raise
        problem = f"{type(error).__name__}: {error}"
    if problem:
        logger.warning("tokens are drawn without the kernels for GPUs: %s", problem)
        return None
    return drawing.draw


@torch.inference_mode()
def _is_same(kernels: Draw, device: torch.device, dtype: torch.dtype, vocab_size: int) -> bool:
    """For random rows of each tier that they are for, and one without numbers."""
    own = [SamplingParams(1, seed=2**40 + n, **trial) for n, trial in enumerate(_TRIALS)]
    rng = torch.Generator(device).manual_seed(0)
    logits = torch.randn(len(own), vocab_size, generator=rng, device=device) * 2
    logits = logits.to(dtype)
    logits[-1, -1] = torch.nan
    knobs, positions = Knobs.of(own, device), torch.arange(len(own), device=device)
    return all(
        torch.equal(
            kernels(logits[:num], positions[:num], knobs.split(num)[0], tier),
            draw_by_operations(logits[:num], positions[:num], knobs.split(num)[0], tier),
        )
        for num, tier in ((1, Tier.GREEDY), (len(own), tier_of(own)))
    )


def _draw_in_parts(
    logits: Tensor, positions: Tensor, knobs: Knobs, greedy: Tensor, tier: Tier
) -> Tensor:
    parts = zip(
        logits.split(_ROWS_AT_ONCE),
        positions.split(_ROWS_AT_ONCE),
        knobs.split(_ROWS_AT_ONCE),
        greedy.split(_ROWS_AT_ONCE),
        strict=True,
    )
    return torch.cat([_draw_some(*part, tier) for part in parts])


def _draw_some(
    logits: Tensor, positions: Tensor, knobs: Knobs, greedy: Tensor, tier: Tier
) -> Tensor:
    """(rows, vocab) -> (rows,), each row by its own tier."""
    scaled = logits.float() / knobs.temperature.clamp_min(1e-5).unsqueeze(1)
    ids = greedy
    if Tier.OPEN in tier:
        ids = torch.where(knobs.tier == Tier.OPEN, _open(scaled, positions, knobs), ids)
    for own, num in ((Tier.NARROW, NUM_CANDIDATES), (Tier.WIDE, scaled.shape[1])):
        if own in tier:
            candidates = _ordered(scaled, min(num, scaled.shape[1]))
            drawn = _filtered(scaled, candidates, positions, knobs)
            ids = torch.where(knobs.tier == own, drawn, ids)
    return ids


def _open(scaled: Tensor, positions: Tensor, knobs: Knobs) -> Tensor:
    """Of those with an equal sum the likeliest is drawn, as where they are sorted."""
    all_ids = torch.arange(scaled.shape[1], device=scaled.device).unsqueeze(0)
    sums = scaled + gumbel_noise(knobs.seed, positions, all_ids)
    is_behind = sums != sums.amax(-1, keepdim=True)
    return scaled.masked_fill(is_behind, float("-inf")).max(dim=-1).indices


def _ordered(scaled: Tensor, num: int) -> Tensor:
    """The ids of the `num` largest values, descending, of equals the lower first: (rows, num).

    Value and id are one number, so that nothing is left open where the last one has equals.
    """
    scaled = scaled + 0.0  # -0.0 is 0.0
    if num == scaled.shape[1]:
        in_order: Tensor = scaled.sort(dim=-1, descending=True, stable=True)[1]
        return in_order
    bits = scaled.view(torch.int32)
    rising = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
    all_ids = torch.arange(scaled.shape[1], device=scaled.device)
    best = ((rising << _ID_BITS) | (_LAST_ID - all_ids)).topk(num, dim=-1)[0]
    ids: Tensor = _LAST_ID - (best & _LAST_ID)
    return ids


def _filtered(scaled: Tensor, ids: Tensor, positions: Tensor, knobs: Knobs) -> Tensor:
    """Draws among the candidates that the filters leave. ids: (rows, candidates) as ordered."""
    values = scaled.gather(1, ids)
    probs = (values - torchs_log_total(scaled)).exp()
    # Added in double precision, as torch does by itself on a processor only.
    mass_up_to = probs.cumsum(-1, dtype=torch.float64).float()
    num = ids.shape[1]
    rank = torch.arange(num, device=ids.device)
    has_top_k = knobs.top_k > 0
    top_k = torch.where(has_top_k, knobs.top_k, num).unsqueeze(1)
    mass = mass_up_to.gather(1, top_k.clamp_max(num) - 1).squeeze(1)
    most_before = knobs.top_p * torch.where(has_top_k, mass, 1.0)
    most_before = torch.where(knobs.top_p < 1, most_before, float("inf")).unsqueeze(1)
    keep = (rank < top_k) & (mass_up_to - probs < most_before)
    keep &= probs >= knobs.min_p.unsqueeze(1) * probs.narrow(1, 0, 1)
    keep |= rank == 0  # the most likely token always survives
    sums = values + gumbel_noise(knobs.seed, positions, ids)
    best = sums.masked_fill(keep.logical_not(), float("-inf")).argmax(-1, keepdim=True)
    drawn: Tensor = ids.gather(1, best).squeeze(1)
    return drawn
