"""Logits to token ids, with noise that depends on nothing but (seed, position, token id).

So the same seed draws the same tokens in any batch, beside any neighbours and after a resume: no
generator state exists that could be lost. The draw is the Gumbel trick (Maddison et al. 2014):
argmax(logits / temperature + noise) samples from the softmax. The noise is a counter-based hash in
the manner of Salmon et al. 2011 ("Parallel random numbers: as easy as 1, 2, 3"), with the 32-bit
finalizer of murmur3 as its mixer.
"""

from collections.abc import Sequence as Rows

import torch
from torch import Tensor

from inference.messages import SamplingParams
from inference.native import drawing
from inference.native.rows import largest as most_likely

_MASK = 0xFFFFFFFF
NUM_CANDIDATES = 256  # enough for every usual top_k and top_p
MORE_CANDIDATES = 16  # times as many for a row that needs more, and then again


def sample(logits: Tensor, params: Rows[SamplingParams], positions: Rows[int]) -> list[int]:
    """One token id per row.

    logits: (rows, vocab), any float type; `positions[i]` is the absolute position of the token
    that row i draws. Greedy rows cost an argmax only.
    """
    drawn = [i for i, p in enumerate(params) if p.temperature > 0]
    if len(drawn) == len(params):
        return [int(token_id) for token_id in _draw(logits.float(), params, positions).tolist()]
    ids = most_likely(logits)[1]
    if drawn:
        chosen, at = [params[i] for i in drawn], [positions[i] for i in drawn]
        ids[drawn] = _draw(logits[drawn].float(), chosen, at)
    return [int(token_id) for token_id in ids.tolist()]


def _draw(logits: Tensor, params: Rows[SamplingParams], positions: Rows[int]) -> Tensor:
    """logits: (rows, vocab) float32 -> ids: (rows,)."""
    scaled = logits / torch.tensor([[max(p.temperature, 1e-5)] for p in params])
    drawn = torch.empty(len(params), dtype=torch.int64)
    for is_filtered, draw in ((False, _draw_among_all), (True, _draw_filtered)):
        if rows := [i for i, p in enumerate(params) if p.has_filters == is_filtered]:
            own = scaled if len(rows) == len(params) else scaled[rows]
            drawn[rows] = draw(own, [params[i] for i in rows], [positions[i] for i in rows])
    return drawn


def _draw_among_all(scaled: Tensor, params: Rows[SamplingParams], positions: Rows[int]) -> Tensor:
    """Where no token is filtered out, nothing needs an order; of equal sums the likelier token is drawn.

    scaled: (rows, vocab) -> (rows,).
    """
    seeds, places = torch.tensor([p.seed for p in params]), torch.tensor(positions)
    if drawing.can_draw(scaled):
        return drawing.draw_among_all(scaled, seeds, places)
    ids, drawn = torch.arange(scaled.shape[1])[None], []
    for row, seed, place in zip(scaled, seeds[:, None], places[:, None], strict=True):
        sums = row + gumbel_noise(seed, place, ids)[0]  # of a row at a time: it takes much room
        drawn.append(row.masked_fill(sums < sums.max(), float("-inf")).argmax())
    return torch.stack(drawn)


def _draw_filtered(
    scaled: Tensor,
    params: Rows[SamplingParams],
    positions: Rows[int],
    num_candidates: int = NUM_CANDIDATES,
) -> Tensor:
    """scaled: (rows, vocab) -> (rows,).

    Tokens stand in one order, by value and then by id, however many candidates a row needs: what it
    draws depends on nothing else in the batch.
    """
    num = min(num_candidates, scaled.shape[1])
    values, ids = largest(scaled, num)
    keep = _kept(values, log_total(scaled), params)
    drawn = _pick(values, ids, keep, params, positions)
    if num < scaled.shape[1] and (wide := _reach_behind(values, keep, params)):
        wide_params, wide_positions = [params[i] for i in wide], [positions[i] for i in wide]
        more = num_candidates * MORE_CANDIDATES
        drawn[wide] = _draw_filtered(scaled[wide], wide_params, wide_positions, more)
    return drawn


def log_total(scaled: Tensor) -> Tensor:
    """The logarithm of each row's sum of exp. scaled: (rows, vocab) -> (rows, 1)."""
    return drawing.log_totals(scaled) if drawing.can_draw(scaled) else torchs_log_total(scaled)


def torchs_log_total(scaled: Tensor) -> Tensor:
    """The same by torch, on any device.

    torch splits a lone row among its threads, which rounds otherwise than a row of a batch; so it never
    gets a lone one.
    """
    rows = scaled.expand(2, -1) if len(scaled) == 1 else scaled
    return rows.logsumexp(-1, keepdim=True).narrow(0, 0, len(scaled))


def largest(scaled: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """The `num` largest values of each row and their ids, descending; of equals the lower id first.

    scaled: (rows, vocab) -> (rows, num) twice. Which of the tokens that equal the last one are in
    is left open.
    """
    is_ours = num <= drawing.MOST_CANDIDATES and drawing.can_draw(scaled)
    values, ids = drawing.candidates(scaled, num) if is_ours else scaled.topk(num, dim=-1)
    ids, by_id = ids.sort(dim=-1)
    values, by_value = values.gather(1, by_id).sort(dim=-1, descending=True, stable=True)
    return values, ids.gather(1, by_value)


def _reach_behind(values: Tensor, keep: Tensor, params: Rows[SamplingParams]) -> list[int]:
    """Rows whose filters may keep more than the candidates, or keep one that equals the last, or want
    to know how likely all are that top_k leaves."""
    is_last = (values == values[:, -1:]) & values.isfinite()
    is_behind = (keep & is_last).any(-1).tolist()
    num = values.shape[1]
    return [i for i, p in enumerate(params) if is_behind[i] or (p.top_k > num and p.top_p < 1)]


def _pick(
    values: Tensor,
    ids: Tensor,
    keep: Tensor,
    params: Rows[SamplingParams],
    positions: Rows[int],
) -> Tensor:
    """One id per row. values, ids, keep: (rows, candidates) -> (rows,)."""
    noise = gumbel_noise(torch.tensor([p.seed for p in params]), torch.tensor(list(positions)), ids)
    best = (values + noise).masked_fill(~keep, float("-inf")).argmax(-1, keepdim=True)
    return ids.gather(1, best).squeeze(1)


def _kept(values: Tensor, totals: Tensor, params: Rows[SamplingParams]) -> Tensor:
    """Which candidates survive top_k, top_p and min_p. values: (rows, candidates) descending.

    The mass of top_p is that of what top_k leaves. Where that is more than the candidates, it is not
    known: `_reach_behind`.
    """
    probs = (values - totals).exp()
    mass_up_to = probs.cumsum(-1)
    num = values.shape[1]
    rank = torch.arange(num)
    top_k = torch.tensor([[p.top_k if p.top_k > 0 else num] for p in params])
    has_top_k = torch.tensor([[p.top_k > 0] for p in params])
    top_p = torch.tensor([[p.top_p] for p in params])
    min_p = torch.tensor([[p.min_p] for p in params])
    mass = torch.where(has_top_k, mass_up_to.gather(1, top_k.clamp_max(num) - 1), 1.0)
    most_before = torch.where(top_p < 1, top_p * mass, float("inf"))
    keep = (rank < top_k) & (mass_up_to - probs < most_before) & (probs >= min_p * probs[:, :1])
    keep[:, 0] = True  # the most likely token always survives
    return keep


def gumbel_noise(seeds: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    """Gumbel(0, 1) noise. seeds: (rows,) int64, positions: (rows,), ids: (rows, n) -> (rows, n)."""
    low, high = seeds & _MASK, (seeds >> 32) & _MASK
    key = _mix(_mix(low) ^ _mix(high ^ 0x9E3779B9) ^ _mix(positions * 0x85EBCA6B))
    bits = _mix(key.unsqueeze(1) ^ _mix(ids * 0xC2B2AE35 + 1))
    uniform = (bits.double() + 0.5) / 2**32  # never 0 or 1
    return -torch.log(-torch.log(uniform)).float()


def _mix(h: Tensor) -> Tensor:
    """murmur3's 32-bit finalizer, in int64 so that torch's missing uint32 does no harm."""
    h = h & _MASK
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    return h ^ (h >> 16)
