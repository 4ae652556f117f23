"""How likely the model found a token, and what it found likelier."""

from collections.abc import Iterator
from collections.abc import Sequence as Rows

from torch import Tensor

from inference.messages import TokenLogprob
from inference.sampler import largest, log_total

_ROWS_AT_ONCE = 128  # with a vocabulary of 150,000: 75 MiB for each of the tensors in between


def logprobs_of(logits: Tensor, ids: Rows[int], num_top: int) -> tuple[TokenLogprob, ...]:
    """One entry per row. logits: (rows, vocab) of the model as it is; `ids[i]` stood behind row i."""
    return tuple(
        one
        for first in range(0, len(ids), _ROWS_AT_ONCE)
        for one in _of_some(
            logits[first : first + _ROWS_AT_ONCE], ids[first : first + _ROWS_AT_ONCE], num_top
        )
    )


def _of_some(logits: Tensor, ids: Rows[int], num_top: int) -> Iterator[TokenLogprob]:
    logits = logits.float()
    totals = log_total(logits)
    own = (logits.gather(1, logits.new_tensor(ids).long()[:, None]) - totals)[:, 0].tolist()
    tops: list[tuple[tuple[int, float], ...]] = [()] * len(ids)
    if num_top:
        values, top_ids = largest(logits, min(num_top, logits.shape[1]))
        likely = (values - totals).tolist()
        tops = [
            tuple(zip(row, probs, strict=True))
            for row, probs in zip(top_ids.tolist(), likely, strict=True)
        ]
    return map(TokenLogprob, ids, own, tops)
