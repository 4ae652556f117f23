"""Bias, penalties and least lengths against their definitions written out; neighbours untouched."""

import math
from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import GenerateRequest, SamplingParams
from inference.logits import Row, shaped
from inference.logprobs import logprobs_of
from inference.sequence import Sequence

VOCAB = 50
EOS = (2,)
ids = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=12)
params = st.builds(
    SamplingParams,
    max_tokens=st.just(100),
    presence_penalty=st.sampled_from((0.0, 0.5, -2.0)),
    frequency_penalty=st.sampled_from((0.0, 0.3, 2.0)),
    repetition_penalty=st.sampled_from((1.0, 1.3, 0.7)),
    logit_bias=st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-100, 100), max_size=4).map(
        lambda biases: tuple(biases.items())
    ),
    min_tokens=st.integers(0, 8),
    stop_token_ids=st.lists(st.integers(0, VOCAB - 1), max_size=2).map(tuple),
)
sequences = st.builds(
    lambda prompt, output, params: Sequence(
        GenerateRequest("r", "m", tuple(prompt), params, tuple(output))
    ),
    ids,
    ids,
    params,
)


def _expected(row: list[float], sequence: Sequence) -> list[float]:
    p, output = sequence.request.params, sequence.token_ids[sequence.num_prompt :]
    made = list(row)
    for token, bias in p.logit_bias:
        made[token] += bias
    for token in set(sequence.token_ids):
        factor = p.repetition_penalty
        made[token] = made[token] / factor if made[token] > 0 else made[token] * factor
    for token in set(output):
        made[token] -= p.presence_penalty + p.frequency_penalty * output.count(token)
    if len(output) < p.min_tokens:
        for token in (*EOS, *p.stop_token_ids):
            made[token] = -math.inf
    return made


@given(st.lists(sequences, min_size=1, max_size=4), st.integers(0, 99), ids)
@settings(max_examples=60, deadline=None)
def test_rows_are_shaped_as_defined_and_each_for_itself(
    rows: list[Sequence], seed: int, more: list[int]
) -> None:
    logits = torch.randn(len(rows), VOCAB, generator=torch.Generator().manual_seed(seed)) * 4
    before = logits.clone()
    for step in range(3):  # the counts follow the output as it grows
        found = shaped(logits, [Row(sequence) for sequence in rows], EOS)
        for row, sequence in enumerate(rows):
            expected = torch.tensor(_expected(logits[row].tolist(), sequence))
            torch.testing.assert_close(found[row], expected, rtol=1e-5, atol=1e-4)
            sequence.append(more[step % len(more)], 0.0)
    assert torch.equal(logits, before)


def test_what_asks_for_nothing_is_not_copied() -> None:
    plain = Sequence(GenerateRequest("r", "m", (1, 2), SamplingParams(max_tokens=5)))
    logits = torch.randn(1, VOCAB)
    assert shaped(logits, [Row(plain)], EOS) is logits


@given(sequences, ids, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_row_behind_a_draft_is_shaped_as_if_it_were_written(
    sequence: Sequence, draft: list[int], seed: int
) -> None:
    logits = torch.randn(1, VOCAB, generator=torch.Generator().manual_seed(seed)) * 4
    rows = [Row(sequence, draft[:i]) for i in range(len(draft) + 1)]
    ahead = shaped(logits.expand(len(rows), -1), rows, EOS)
    for shaped_ahead, row in zip(ahead, rows, strict=True):
        written = (*sequence.request.output_ids, *row.behind)
        later = Row(Sequence(replace(sequence.request, output_ids=written)))
        assert row.position == later.position
        assert torch.equal(shaped_ahead, shaped(logits, [later], EOS)[0])


@given(st.integers(0, 99), st.integers(0, 7))
@settings(max_examples=20, deadline=None)
def test_log_probabilities_are_the_models_own(seed: int, num_top: int) -> None:
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(seed)) * 4
    expected = logits.log_softmax(-1)
    drawn = [5, 0, 49]
    together = logprobs_of(logits, drawn, num_top)
    alone = [logprobs_of(logits[i : i + 1], [drawn[i]], num_top)[0] for i in range(3)]
    assert list(together) == alone
    for row, rated in enumerate(together):
        assert math.isclose(rated.logprob, float(expected[row, drawn[row]]), abs_tol=1e-5)
        assert [i for i, _ in rated.top] == expected[row].topk(num_top).indices.tolist()
        for token_id, logprob in rated.top:
            assert math.isclose(logprob, float(expected[row, token_id]), abs_tol=1e-5)
