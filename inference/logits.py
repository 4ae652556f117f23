"""What a request does to its logits before a token is drawn: bias, penalties, a least length.

Everything follows from (prompt, output), so that a resumed answer goes on as it would have.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Rows

import torch
from torch import Tensor

from inference.messages import SamplingParams
from inference.sequence import Sequence


def shaped(
    logits: Tensor,
    sequences: Rows[Sequence],
    eos_ids: Iterable[int],
    masks: Mapping[str, bytes] | None = None,
) -> Tensor:
    """The logits that are drawn from, (rows, vocab); what nobody wants changed is not copied.

    `masks` are those of the grammars, by sequence.
    """
    masks = masks or {}
    changed = [i for i, s in enumerate(sequences) if s.id in masks or _asks(s)]
    if not changed:
        return logits
    logits = logits.float().clone()
    for i in changed:
        sequence, params = sequences[i], sequences[i].request.params
        _add_bias(logits[i], params)
        _penalise(logits[i], sequence, params)
        if mask := masks.get(sequence.id):
            forbidden = torch.frombuffer(bytearray(mask), dtype=torch.uint8) == 0
            logits[i].masked_fill_(forbidden, float("-inf"))
        elif sequence.num_output < params.min_tokens:
            logits[i, [*eos_ids, *params.stop_token_ids]] = float("-inf")
    return logits


def _asks(sequence: Sequence) -> bool:
    params = sequence.request.params
    return (
        bool(params.logit_bias) or params.has_penalties or sequence.num_output < params.min_tokens
    )


def _add_bias(row: Tensor, params: SamplingParams) -> None:
    """row: (vocab,), changed in place."""
    if params.logit_bias:
        ids, biases = zip(*params.logit_bias, strict=True)
        row[list(ids)] += torch.tensor(biases)


def _penalise(row: Tensor, sequence: Sequence, params: SamplingParams) -> None:
    """row: (vocab,), changed in place.

    The repetition penalty divides positive logits and multiplies negative ones (Keskar et al. 2019,
    CTRL); the other two are subtracted as OpenAI's API reference defines them.
    """
    counts = sequence.output_counts
    if params.repetition_penalty != 1:
        seen = list({*sequence.prompt_vocabulary, *counts})
        values = row[seen]
        row[seen] = torch.where(
            values > 0, values / params.repetition_penalty, values * params.repetition_penalty
        )
    if counts and (params.presence_penalty or params.frequency_penalty):
        often = torch.tensor(list(counts.values()), dtype=torch.float32)
        row[list(counts)] -= params.presence_penalty + params.frequency_penalty * often
