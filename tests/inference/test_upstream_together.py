"""What a server says in a moment is handed over together, the first words at once, and all of it."""

import asyncio
import re
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.call_forms import Call
from inference.parsing import Reasoning, Segment, Text
from inference.upstreams.messages import Said
from inference.upstreams.together import MOST_S, Together, joined

texts = st.text(st.sampled_from("ab .。\n"), max_size=3)
STOPS = re.compile(r"[.!?…。！？\n]")
segments = st.lists(
    st.one_of(st.builds(Text, texts), st.builds(Reasoning, texts), st.just(Call("lamp", "{}"))),
    max_size=20,
)


def spelt(said: list[Segment]) -> list[tuple[type, str]]:
    """By kinds, in order; calls one by one."""
    runs = groupby(said, lambda one: (type(one), id(one) if isinstance(one, Call) else 0))
    return [
        (kind, "".join(one.arguments if isinstance(one, Call) else one.text for one in run))
        for (kind, _), run in runs
    ]


@given(segments)
def test_nothing_is_lost_or_moved(said: list[Segment]) -> None:
    together = joined(said)
    assert spelt(together) == spelt(said)
    for before, after in pairwise(together):
        is_one = type(before) is type(after) and not isinstance(before, Call)
        assert not is_one or STOPS.search(before.text), "a sentence may have ended there"


@given(segments)
def test_no_sentence_goes_on_behind_its_end(said: list[Segment]) -> None:
    """What came behind a stop begins another: no policy has to judge both at once."""
    longest = max((len(one.text) for one in said if not isinstance(one, Call)), default=0)
    for one in joined(said):
        if not isinstance(one, Call) and (stop := STOPS.search(one.text)):
            assert len(one.text) - stop.end() < max(1, longest), "within one that came so"


@pytest.mark.parametrize("num_answers", [1, 64, 1000])
async def test_the_first_words_come_at_once_and_later_ones_some_at_a_time(num_answers: int) -> None:
    heard: list[tuple[float, Said]] = []
    loop = asyncio.get_running_loop()
    together = Together(lambda said: heard.append((loop.time(), said)), lambda: num_answers)
    began_s = loop.time()
    for number in range(40):
        together.say([Text(f"{number} ")])
        assert number or len(heard) == 1
        await asyncio.sleep(0.005)
    together.say([])
    together.flush()
    text = "".join(one.text for _, said in heard for one in said.segments if isinstance(one, Text))
    assert text == "".join(f"{number} " for number in range(40))
    assert all(len(said.segments) == 1 for _, said in heard)
    gaps = [b - a for (a, _), (b, _) in pairwise(heard)][:-1]
    gap_s = min(MOST_S, 0.03 + 0.001 * num_answers) - 0.002
    assert all(gap >= gap_s for gap in gaps)
    assert 2 <= len(heard) <= 3 + (loop.time() - began_s) / gap_s


async def test_what_nothing_follows_is_not_kept_back() -> None:
    heard: list[Said] = []
    together = Together(heard.append, lambda: 1)
    together.say([Text("One ")])
    together.say([Text("two ")])
    together.say([Reasoning("three")])
    assert len(heard) == 1
    await asyncio.sleep(0.1)
    assert heard[1:] == [Said((Text("two "), Reasoning("three")))]
    together.flush()
    assert len(heard) == 2
