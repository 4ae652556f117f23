"""Guessing ahead changes how fast an answer comes and nothing else."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import Failed, Finished, GenerateRequest, SamplingParams, Tokens, Update
from inference.assembly import assemble
from inference.engine_loop import EngineLoop
from inference.speculation import Drafter
from tests.inference.conftest import engine_config

tokens = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def expected(token_ids: list[int], most: int) -> list[int]:
    """The same by plain search."""
    for length in (4, 2):
        last = token_ids[-length:]
        for end in range(len(token_ids) - 1, length - 1, -1):
            if len(last) == length and token_ids[end - length : end] == last:
                grown = list(token_ids)
                for place in range(end, end + most):
                    grown.append(grown[place])
                return grown[len(token_ids) :]
    return []


@given(tokens, st.integers(1, 4))
def test_a_draft_is_what_followed_the_same_tokens_before(token_ids: list[int], most: int) -> None:
    assert Drafter().draft(token_ids, most) == expected(token_ids, most)
    grown = Drafter()
    for length in range(1, len(token_ids) + 1):
        assert grown.draft(token_ids[:length], most) == expected(token_ids[:length], most)


def test_drafts_that_are_wrong_stop_for_a_while() -> None:
    drafter, token_ids = Drafter(), [1, 2] * 20
    for _ in range(20):
        if draft := drafter.draft(token_ids, 4):
            drafter.learn(len(draft), 0, len(token_ids))
    assert drafter.draft(token_ids, 4) == []
    assert drafter.draft(token_ids * 2, 4)


def run(loop: EngineLoop, requests: list[GenerateRequest]) -> dict[str, list[Update]]:
    heard: defaultdict[str, list[Update]] = defaultdict(list)
    for request in requests:
        loop.submit(request)
    while not loop.is_idle:
        for frame in loop.step():
            for request_id, update in frame.updates:
                heard[request_id].append(update)
    loop.kv.check()
    assert loop.kv.used_tokens == 0
    return heard


def told(updates: list[Update]) -> tuple[object, ...]:
    """What a reader is told in the end, but for its timing."""
    said = [u for u in updates if isinstance(u, Tokens)]
    end = updates[-1]
    assert isinstance(end, Finished | Failed)
    rated = [(r.token_id, round(r.logprob, 3)) for u in said for r in u.logprobs]
    ids = [i for u in said for i in u.ids]
    ending = (end.reason, end.usage, end.stop) if isinstance(end, Finished) else end
    return "".join(u.text for u in said), ids, rated, ending


@pytest.fixture(scope="module")
def loops(tiny_model: Path) -> tuple[EngineLoop, EngineLoop]:
    """Without and with drafts."""
    config = engine_config(tiny_model)
    plain, drafting = (
        assemble("tiny", tiny_model, replace(config, max_num_drafting=n), lambda *_: None)[0]
        for n in (0, 4)
    )
    return plain, drafting


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_same_tokens_as_without(
    loops: tuple[EngineLoop, EngineLoop], data: st.DataObject
) -> None:
    requests = []
    for number in range(data.draw(st.integers(1, 3))):
        piece = data.draw(st.lists(st.integers(3, 500), min_size=2, max_size=8))
        params = SamplingParams(
            max_tokens=data.draw(st.integers(1, 60)),
            temperature=data.draw(st.sampled_from([0.0, 0.3, 1.0])),
            seed=data.draw(st.integers(0, 99)),
            top_k=data.draw(st.sampled_from([0, 2])),
            stop=data.draw(st.sampled_from([(), ("e",), ("th", " q")])),
            num_logprobs=data.draw(st.sampled_from([None, 0])),
            presence_penalty=data.draw(st.sampled_from([0.0, 0.0, 1.0])),
            min_tokens=0,
        )
        prompt = tuple(piece * data.draw(st.integers(1, 12)))
        requests.append(GenerateRequest(f"r{number}", "tiny", prompt, params))
    plain, drafting = (run(loop, requests) for loop in loops)
    for request in requests:
        assert told(drafting[request.request_id]) == told(plain[request.request_id])


def test_what_repeats_takes_fewer_steps(loops: tuple[EngineLoop, EngineLoop]) -> None:
    """A bias makes the random model say one word for ever, which is soon guessed right."""
    params = SamplingParams(max_tokens=200, temperature=0.0, logit_bias=((9, 100.0),))
    request = GenerateRequest("r", "tiny", (5, 6, 7, 8), params)
    steps = []
    for loop in loops:
        accepted = loop.scheduler.num_accepted
        loop.submit(request)
        num_steps = 0
        while not loop.is_idle:
            num_steps += len(list(loop.step())) > 0
        steps.append(num_steps)
        gained = loop.scheduler.num_accepted - accepted
        assert 200 - 8 <= num_steps + gained <= 203, "one step draws what a draft was right about"
    assert steps[1] < 0.3 * steps[0]


def test_nobody_guesses_beyond_the_context_or_the_room(tiny_model: Path) -> None:
    """Full to the last token, with drafts at every step on the way."""
    config = replace(engine_config(tiny_model), kv_bytes=None, max_num_drafting=4)
    loop, info = assemble("tiny", tiny_model, config, lambda *_: None)
    params = SamplingParams(max_tokens=10_000, temperature=0.0, ignore_eos=True)
    heard = run(loop, [GenerateRequest("r", "tiny", (5, 6) * 20, params)])
    end = heard["r"][-1]
    assert isinstance(end, Finished)
    assert end.reason == "length"
    assert end.usage.prompt_tokens + end.usage.completion_tokens == info.max_context_tokens
