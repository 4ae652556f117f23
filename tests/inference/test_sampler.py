"""The draw depends on (seed, position, logits) and on nothing else, and has the right odds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import SamplingParams
from inference.sampler import NUM_CANDIDATES, gumbel_noise, log_total, sample

VOCAB = 1000


def _params(**changes: float) -> SamplingParams:
    values: dict[str, float] = {"temperature": 1.0, **changes}
    return SamplingParams(max_tokens=1, **values)  # type: ignore[arg-type]


def _logits(rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, VOCAB, generator=torch.Generator().manual_seed(seed)) * 3


def test_greedy_takes_the_most_likely_token() -> None:
    logits = _logits(5)
    ids = sample(logits, [_params(temperature=0)] * 5, range(5))
    assert ids == logits.argmax(-1).tolist()


@given(order=st.permutations(range(6)), seed=st.integers(0, 2**63 - 1))
@settings(max_examples=30, deadline=None)
def test_neighbours_in_the_batch_change_nothing(order: list[int], seed: int) -> None:
    logits = _logits(6)
    params = [
        _params(seed=seed + i if seed < 2**62 else seed - i, top_p=p, top_k=k, temperature=t)
        for i, (p, k, t) in enumerate(
            [
                (1.0, 0, 1.0),
                (0.9, 0, 0.7),
                (1.0, 40, 1.3),
                (0.5, 3, 1.0),
                (1.0, 0, 0.0),
                (0.99, 0, 2),
            ]
        )
    ]
    positions = [17, 3, 900, 0, 5, 2**20]
    together = sample(logits, params, positions)
    shuffled = sample(logits[order], [params[i] for i in order], [positions[i] for i in order])
    alone = [sample(logits[i : i + 1], [params[i]], [positions[i]])[0] for i in range(6)]
    assert [together[i] for i in order] == shuffled
    assert together == alone


def test_frequencies_follow_the_softmax() -> None:
    probs = torch.tensor([0.5, 0.3, 0.15, 0.05])
    n = 100_000
    logits = probs.log().expand(n, 4)
    ids = torch.tensor(sample(logits, [_params(seed=99)] * n, range(n)))
    found = torch.bincount(ids, minlength=4) / n
    # Three standard errors of the largest probability are .0047.
    assert torch.allclose(found, probs, atol=0.005)


def test_temperature_sharpens() -> None:
    probs = torch.tensor([0.6, 0.4])
    n = 50_000
    ids = sample(probs.log().expand(n, 2), [_params(temperature=0.5, seed=1)] * n, range(n))
    sharper = 0.6**2 / (0.6**2 + 0.4**2)
    assert ids.count(0) / n == pytest.approx(sharper, abs=0.01)


@pytest.mark.parametrize(
    ("filters", "allowed"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.6}, {0, 1}),
        ({"top_p": 0.01}, {0}),
        ({"min_p": 0.5}, {0, 1}),
        ({"top_k": 3, "top_p": 0.85, "min_p": 0.31}, {0, 1}),
        ({"top_k": 2, "top_p": 0.6}, {0}),  # .5 of .8 is more
        ({"top_k": 3, "top_p": 0.84}, {0, 1}),
        ({"top_k": 3, "top_p": 0.85}, {0, 1, 2}),
        ({"top_k": 9, "top_p": 0.94}, {0, 1, 2}),
        ({}, {0, 1, 2, 3}),
    ],
)
def test_filters_keep_exactly_their_tokens(filters: dict[str, float], allowed: set[int]) -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(3000, 4)
    ids = sample(logits, [_params(seed=5, **filters)] * 3000, range(3000))
    assert set(ids) == allowed


def test_the_mass_is_that_of_all_that_top_k_leaves() -> None:
    """Also where it leaves more than the candidates: of 512 equals, half are 256."""
    rows, num = 6000, 2 * NUM_CANDIDATES
    ids = sample(
        torch.zeros(rows, VOCAB), [_params(seed=3, top_k=num, top_p=0.5)] * rows, range(rows)
    )
    assert set(ids) == set(range(num // 2))


def test_a_flat_distribution_reaches_behind_the_candidates() -> None:
    rows = 4000
    logits = torch.zeros(rows, VOCAB)
    ids = sample(logits, [_params(seed=2, top_p=0.95)] * rows, range(rows))
    assert len(set(ids)) > 2 * NUM_CANDIDATES


def test_the_candidates_and_the_whole_vocabulary_draw_the_same() -> None:
    """top_k that fits the candidates equals top_k that forces a sort of everything."""
    logits = _logits(200)
    few = sample(logits, [_params(seed=8, top_k=50)] * 200, range(200))
    beside_a_wide_one = sample(
        torch.cat([logits, torch.zeros(1, VOCAB)]),
        [_params(seed=8, top_k=50)] * 200 + [_params(seed=8)],
        range(201),
    )
    assert few == beside_a_wide_one[:200]


ROUNDED = [
    {"top_k": 20},
    {"temperature": 0.7, "top_p": 0.8, "top_k": 20},
    {"top_k": 256},
    {"top_p": 0.9},
    {"min_p": 0.02},
    {"top_k": 1},
    {},
]


@pytest.mark.parametrize("filters", ROUNDED)
def test_rounded_logits_that_tie_are_drawn_the_same_in_any_batch(
    filters: dict[str, float],
) -> None:
    """bfloat16 leaves eight bits: near 20, an eighth lies between neighbours, and many tokens tie."""
    generator = torch.Generator().manual_seed(1)
    logits = (torch.randn(24, 8000, generator=generator) + 20).bfloat16()
    params = [_params(seed=i, **filters) for i in range(24)]
    alone = [sample(logits[i : i + 1], [params[i]], [50 + i])[0] for i in range(24)]
    for others in ROUNDED:
        mixed = [p for own in params for p in (own, _params(seed=7, **others))]
        drawn = sample(logits.repeat_interleave(2, 0), mixed, [50 + i // 2 for i in range(48)])
        assert drawn[::2] == alone


@pytest.mark.parametrize(("top_k", "allowed"), [(1, {0}), (3, {0, 1, 2}), (300, set(range(300)))])
def test_of_equals_the_lower_ids_are_kept(top_k: int, allowed: set[int]) -> None:
    rows = 3000
    ids = sample(torch.zeros(rows, VOCAB), [_params(seed=4, top_k=top_k)] * rows, range(rows))
    assert set(ids) == allowed


def test_a_row_adds_up_alone_as_in_a_batch() -> None:
    """torch gives a lone row's sum to several threads, where there are several."""
    logits = torch.randn(64, 151_936, generator=torch.Generator().manual_seed(3)) * 2.5
    num_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        together = log_total(logits)
        alone = torch.cat([log_total(row[None]) for row in logits])
    finally:
        torch.set_num_threads(num_threads)
    assert torch.equal(alone, together)


def test_rows_without_numbers_leave_their_neighbours_alone() -> None:
    """They are failed afterwards; here they must not raise."""
    logits = _logits(3)
    params = [_params(seed=i, top_p=0.9) for i in range(3)]
    expected = sample(logits, params, range(3))
    logits[1] = torch.nan
    assert sample(logits, params, range(3))[::2] == expected[::2]
    logits[1, 5:] = 0.0
    assert sample(logits, params, range(3))[::2] == expected[::2]


def test_noise_differs_by_seed_position_and_token() -> None:
    seeds = torch.tensor([0, 1, 2**32, 2**62])
    ids = torch.arange(500).expand(4, 500)
    by_seed = gumbel_noise(seeds, torch.zeros(4, dtype=torch.long), ids)
    by_position = gumbel_noise(torch.zeros(4, dtype=torch.long), torch.arange(4), ids)
    for noise in (by_seed, by_position):
        flat = noise.flatten()
        assert flat.isfinite().all()
        assert len(flat.unique()) > 0.999 * len(flat)
        assert abs(torch.corrcoef(noise) - torch.eye(4)).max() < 0.2
        assert flat.mean() == pytest.approx(0.5772, abs=0.1)  # the Euler–Mascheroni constant
