"""How likely the model found a token, and what it found likelier."""

from collections.abc import Sequence as Rows

from torch import Tensor

from inference.messages import TokenLogprob
from inference.sampler import largest, log_total


def logprobs_of(logits: Tensor, ids: Rows[int], num_top: int) -> tuple[TokenLogprob, ...]:
    """One entry per row. logits: (rows, vocab) of the model as it is; `ids[i]` stood behind row i."""
    if not ids:
        return ()
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
    return tuple(
        TokenLogprob(token_id, logprob, top)
        for token_id, logprob, top in zip(ids, own, tops, strict=True)
    )
