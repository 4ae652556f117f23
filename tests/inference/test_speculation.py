"""Guessing ahead changes how fast an answer comes and nothing else."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference import Failed, Finished, GenerateRequest, SamplingParams, Tokens, Update
from inference.assembly import assemble
from inference.engine_loop import EngineLoop
from inference.grammar import regex_grammar
from inference.kv_cache import SlabKV
from inference.ngrams import NgramDrafter
from inference.scheduler import Scheduler
from inference.sequence import Sequence
from tests.inference.conftest import engine_config

# Both end by themselves; the second one repeats what it has written.
GRAMMARS = (regex_grammar("[a-e ]{3,40}"), regex_grammar("(the quick fox ){1,9}[0-9]{2}"))
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
    assert NgramDrafter().draft(token_ids, most) == expected(token_ids, most)
    grown = NgramDrafter()
    for length in range(1, len(token_ids) + 1):
        assert grown.draft(token_ids[:length], most) == expected(token_ids[:length], most)


def test_drafts_that_are_wrong_stop_for_a_while() -> None:
    drafter, token_ids = NgramDrafter(), [1, 2] * 20
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
    rated = [r.token_id for u in said for r in u.logprobs]
    ids = [i for u in said for i in u.ids]
    ending = (end.reason, end.usage, end.stop) if isinstance(end, Finished) else end
    return "".join(u.text for u in said), ids, rated, ending


def logprobs(updates: list[Update]) -> list[float]:
    return [r.logprob for u in updates if isinstance(u, Tokens) for r in u.logprobs]


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
            repetition_penalty=data.draw(st.sampled_from([1.0, 1.0, 0.8])),
            grammar=data.draw(st.sampled_from(["", "", *GRAMMARS])),
        )
        prompt = tuple(piece * data.draw(st.integers(1, 12)))
        requests.append(GenerateRequest(f"r{number}", "tiny", prompt, params))
    plain, drafting = (run(loop, requests) for loop in loops)
    for request in requests:
        ours, theirs = drafting[request.request_id], plain[request.request_id]
        assert told(ours) == told(theirs)
        assert logprobs(ours) == pytest.approx(logprobs(theirs), abs=1e-3)


@pytest.mark.parametrize(
    "rules",
    [
        {"frequency_penalty": -2.0, "repetition_penalty": 0.5},
        {"grammar": regex_grammar("(the quick brown fox ){30}")},
        {"min_tokens": 90, "logit_bias": ((9, 100.0), (2, 99.0))},
    ],
)
def test_guesses_are_judged_by_rules_that_change_with_every_token(
    loops: tuple[EngineLoop, EngineLoop], rules: dict[str, Any]
) -> None:
    params = SamplingParams(**{"max_tokens": 100, "temperature": 0.0, **rules})
    request = GenerateRequest("r", "tiny", (5, 6, 7, 8), params)
    accepted = loops[1].scheduler.num_accepted
    plain, drafting = (run(loop, [request])["r"] for loop in loops)
    assert told(plain) == told(drafting)
    assert loops[1].scheduler.num_accepted - accepted > 30


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
        assert 200 <= num_steps + gained <= 203, "one step draws what a draft was right about"
    assert steps[1] < 0.3 * steps[0]


def test_a_guess_beyond_the_context_or_the_room_is_not_made(tiny_model: Path) -> None:
    """Full to the last token, with drafts at most steps on the way."""
    config = replace(engine_config(tiny_model), max_num_drafting=4)
    loop, info = assemble("tiny", tiny_model, config, lambda *_: None)
    bias = ((9, 100.0),)
    params = SamplingParams(max_tokens=10_000, temperature=0.0, logit_bias=bias, ignore_eos=True)
    sequences = []
    loop.submit(GenerateRequest("r", "tiny", (5, 6) * 20, params))
    while not loop.is_idle:
        list(loop.step())
        sequences += [
            (len(s.token_ids) + len(s.draft), loop.kv.used_tokens)
            for s in loop.scheduler.running.values()
        ]
    assert max(length for length, _ in sequences) <= info.max_context_tokens
    assert loop.scheduler.num_accepted > info.max_context_tokens / 2
    loop.kv.check()


def test_drafts_never_take_the_place_of_somebodys_next_token() -> None:
    for budget in (4, 5, 8, 16):
        scheduler = Scheduler(
            SlabKV(10_000, 1000),
            max_num_sequences=4,
            step_budget_tokens=budget,
            max_waiting_tokens=10_000,
            max_num_drafting=4,
        )
        params = SamplingParams(max_tokens=500)
        sequences = [
            Sequence(GenerateRequest(f"r{n}", "m", (1, 2) * 3, params, user=f"u{n}"))
            for n in range(4)
        ]
        for sequence in sequences:
            scheduler.add(sequence)
        for _ in range(60):
            plan = scheduler.guess(scheduler.plan())
            assert sum(num for _, num in plan) <= budget
            for sequence, num_tokens in plan:
                num_drafted = len(sequence.draft)
                sequence.num_computed += num_tokens - num_drafted
                if sequence.num_pending:
                    continue
                scheduler.accept(sequence, num_drafted)
                for _ in range(num_drafted + 1):
                    sequence.append(2 - len(sequence.token_ids) % 2, 0.0)
                sequence.num_computed = len(sequence.token_ids) - 1
        lengths = [s.num_output for s in sequences]
        assert min(lengths) > 30, (budget, lengths)
