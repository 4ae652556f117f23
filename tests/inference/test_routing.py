"""Which worker gets a request, as pure functions: what is cached there, its work, its room, its pace."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from inference.prefix_index import BLOCK_TOKENS, block_hashes
from inference.routing import MAX_SIBLINGS, SLACK_TOKENS, Candidate, PrefixMemory, choose

TOKENS = st.integers(0, 5_000)
PROMPT = 6_000
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        num_cached=TOKENS,
        load=TOKENS.map(float),
        num_free=st.integers(0, 20_000),
        num_empty=st.integers(0, 20_000),
        is_straggling=st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(CANDIDATES, st.integers(0, PROMPT))
def test_nobody_is_chosen_while_another_is_better_in_everything(
    candidates: list[Candidate], num_answer: int
) -> None:
    chosen = candidates[choose(candidates, PROMPT, PROMPT + num_answer)]
    for other in candidates:
        assert not (
            other.num_cached > chosen.num_cached
            and other.load < chosen.load
            and other.num_free > chosen.num_free
            and not other.is_straggling
        )


@given(CANDIDATES, st.data())
def test_the_order_of_workers_means_nothing(
    candidates: list[Candidate], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(candidates))
    one = candidates[choose(candidates, PROMPT, PROMPT)]
    other = shuffled[choose(shuffled, PROMPT, PROMPT)]
    assert (one.num_cached, one.load, one.is_straggling) == (
        other.num_cached,
        other.load,
        other.is_straggling,
    ) or _is_tie(one, other)


def _is_tie(one: Candidate, other: Candidate) -> bool:
    """Of two that cost the same either may be taken."""

    def cost(candidate: Candidate) -> float:
        lacking = max(0, PROMPT - candidate.num_free)
        own = candidate.load + PROMPT - candidate.num_cached + lacking
        return own * (4 if candidate.is_straggling else 1)

    return cost(one) == cost(other)


@given(TOKENS, TOKENS)
def test_a_conversation_stays_until_its_worker_has_far_more_to_do(load: int, other: int) -> None:
    """A prompt that is cached as a whole is worth itself and some more."""
    candidates = [Candidate(num_cached=1_000, load=load), Candidate(load=other)]
    stays = choose(candidates, 1_000, 1_100) == 0
    assert stays == (load < other + 1_000 + SLACK_TOKENS)


def test_a_beginning_that_many_have_does_not_hold_them_together() -> None:
    """Of ten thousand tokens a hundred are cached: not worth a queue."""
    candidates = [Candidate(num_cached=100, load=500), Candidate()]
    assert choose(candidates, 10_000, 10_000) == 1


@given(st.integers(0, 199))
def test_a_straggler_gets_less_and_not_nothing(load: int) -> None:
    slow = Candidate(num_cached=100, is_straggling=True)
    assert choose([slow, Candidate(load=load)], 100, 200) == 1
    assert choose([slow, Candidate(load=3_000)], 100, 200) == 0
    assert choose([slow], 100, 200) == 0


def test_who_has_no_room_is_asked_last() -> None:
    full = Candidate(load=100, num_free=50)
    assert choose([full, Candidate(load=900, num_free=5_000)], 1_000, 1_200) == 1


def test_strangers_go_where_most_is_empty() -> None:
    candidates = [Candidate(num_free=900, num_empty=n) for n in (100, 700, 300)]
    assert choose(candidates, 50, 80) == 1


@given(CANDIDATES, st.data())
def test_siblings_stay_together_up_to_a_number(
    candidates: list[Candidate], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(candidates) - 1))
    candidates[index] = replace(candidates[index], num_siblings=MAX_SIBLINGS - 1)
    assert choose(candidates, PROMPT, PROMPT) == index
    many = [replace(c, num_siblings=MAX_SIBLINGS) for c in candidates]
    alone = [replace(c, num_siblings=0) for c in candidates]
    assert choose(many, PROMPT, PROMPT) == choose(alone, PROMPT, PROMPT)


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=12 * BLOCK_TOKENS), max_size=6),
    st.integers(1, 30),
)
def test_what_is_remembered_is_a_beginning_and_bounded(
    prompts: list[list[int]], most_blocks: int
) -> None:
    memory = PrefixMemory()
    memory.hold(most_blocks * BLOCK_TOKENS)
    for prompt in prompts:
        keys = list(block_hashes(prompt, hash("salt")))
        memory.add(keys)
        assert len(memory) <= most_blocks
        # The last prompt is there as far as there is room: its beginning stays.
        assert memory.num_cached(keys) == min(len(keys), most_blocks) * BLOCK_TOKENS
        assert memory.num_cached(list(block_hashes(prompt, hash("other")))) == 0
    memory.clear()
    assert len(memory) == 0
