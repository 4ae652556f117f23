"""What a request does to its logits before a token is drawn: bias, penalties, a least length.

Everything follows from (prompt, output), so that a resumed answer goes on as it would have.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
from torch import Tensor

from inference.messages import SamplingParams
from inference.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """A place where a token is drawn: behind a sequence, and behind the first tokens of its draft.

    Those are taken for written, so that each token of a draft is judged by the rules that hold if all
    before it are right. `mask` is of the sequence's grammar: a byte for each token, 0 where it must not
    come.
    """

    sequence: Sequence
    behind: Rows[int] = ()
    mask: bytes | None = None

    @property
    def params(self) -> SamplingParams:
        return self.sequence.request.params

    @property
    def position(self) -> int:
        return len(self.sequence.token_ids) + len(self.behind)

    @property
    def is_short(self) -> bool:
        """Whether the answer must not end here."""
        return self.sequence.num_output + len(self.behind) < self.params.min_tokens

    @property
    def is_shaped(self) -> bool:
        params = self.params
        has_rules = bool(params.logit_bias) or params.has_penalties
        return has_rules or self.mask is not None or self.is_short

    def counts(self) -> Counter[int]:
        """How often each token was written."""
        counts = self.sequence.output_counts
        return counts + Counter(self.behind) if self.behind else counts


def shaped(logits: Tensor, rows: Rows[Row], eos_ids: Iterable[int]) -> Tensor:
    """The logits that are drawn from, (rows, vocab); what nobody wants changed is not copied."""
    changed = [i for i, row in enumerate(rows) if row.is_shaped]
    if not changed:
        return logits
    logits = logits.float().clone()
    for i in changed:
        row, params = rows[i], rows[i].params
        _add_bias(logits[i], params)
        if params.has_penalties:
            _penalise(logits[i], row)
        if row.mask is not None:
            allowed = torch.frombuffer(bytearray(row.mask), dtype=torch.uint8)
            logits[i].masked_fill_(allowed.to(logits.device) == 0, float("-inf"))
        elif row.is_short:
            logits[i, [*eos_ids, *params.stop_token_ids]] = float("-inf")
    return logits


def _add_bias(row: Tensor, params: SamplingParams) -> None:
    """row: (vocab,), changed in place."""
    if params.logit_bias:
        ids, biases = zip(*params.logit_bias, strict=True)
        row[list(ids)] += torch.tensor(biases, device=row.device)


def _penalise(logits: Tensor, row: Row) -> None:
    """logits: (vocab,), changed in place.

    The repetition penalty divides positive logits and multiplies negative ones (Keskar et al. 2019,
    CTRL); the other two are subtracted as OpenAI's API reference defines them.
    """
    params, counts = row.params, row.counts()
    if params.repetition_penalty != 1:
        seen = list({*row.sequence.prompt_vocabulary, *counts})
        values = logits[seen]
        logits[seen] = torch.where(
            values > 0, values / params.repetition_penalty, values * params.repetition_penalty
        )
    if counts and (params.presence_penalty or params.frequency_penalty):
        often = torch.tensor(list(counts.values()), dtype=torch.float32, device=logits.device)
        logits[list(counts)] -= params.presence_penalty + params.frequency_penalty * often
