"""Policies: what follows from scores, what is refused, and what a changed one would have decided."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.categories import CATEGORIES
from moderation.policies import (
    ACTIONS,
    STAGES,
    BadPolicy,
    Judged,
    Policy,
    Verdict,
    parsed,
    rank,
    replayed,
)

POLICY = {
    "input": {"hate": {"block": 0.8, "note": 0.5}, "secrets": {"redact": 0.5}},
    "output": {"violence": {"review": 0.7}},
    "on_failure": {"input": "block"},
    "partial_output": "remove",
}
probabilities = st.floats(0, 1)
scores = st.dictionaries(st.sampled_from(CATEGORIES), probabilities)
policies = st.fixed_dictionaries(
    {},
    optional={
        stage: st.dictionaries(
            st.sampled_from(CATEGORIES),
            st.dictionaries(st.sampled_from(ACTIONS[1:]), st.floats(0.01, 1), max_size=3),
            max_size=4,
        )
        for stage in STAGES
    },
)


@pytest.mark.parametrize(
    ("stage", "found", "action", "category"),
    [
        ("input", {}, "allow", None),
        ("input", {"hate": 0.49}, "allow", None),
        ("input", {"hate": 0.5}, "note", "hate"),
        ("input", {"hate": 0.8}, "block", "hate"),
        ("input", {"hate": 0.6, "secrets": 1.0}, "redact", "secrets"),
        ("input", {"violence": 1.0}, "allow", None),
        ("output", {"violence": 1.0}, "review", "violence"),
        ("tools", {"hate": 1.0}, "allow", None),
    ],
)
def test_the_strongest_action_that_is_reached_is_taken(
    stage: Any, found: dict[str, float], action: str, category: str | None
) -> None:
    verdict = parsed(POLICY).verdict(stage, found)
    assert verdict.action == action
    assert [reason.category for reason in verdict.reasons][:1] == ([category] if category else [])


def test_what_could_not_be_judged_is_as_the_policy_says() -> None:
    policy = parsed(POLICY)
    assert policy.verdict_of_failure("input") == Verdict("block", has_failed=True)
    assert policy.verdict_of_failure("output") == Verdict("allow", has_failed=True)
    assert not policy.keeps_partial
    assert [policy.judges(stage) for stage in STAGES] == [True, True, False, False]


@given(policies, st.sampled_from(STAGES), scores, st.sampled_from(CATEGORIES), probabilities)
def test_more_of_anything_never_makes_a_verdict_milder(
    given_policy: Any, stage: Any, found: dict[str, float], category: str, more: float
) -> None:
    policy = parsed(given_policy)
    before = policy.verdict(stage, found)
    raised = found | {category: max(found.get(category, 0), more)}
    assert rank(policy.verdict(stage, raised).action) >= rank(before.action)
    assert all(one.probability >= one.threshold for one in before.reasons)


@given(policies)
def test_a_policy_is_the_same_after_it_was_kept(given_policy: Any) -> None:
    policy = parsed(given_policy)
    assert parsed(json.loads(json.dumps(policy.as_json()))) == policy
    assert parsed({}) == Policy()


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], ""),
        (None, ""),
        ("block everything", ""),
        ({"inputs": {}}, ""),
        ({"input": []}, "input"),
        ({"input": {"hatred": {"block": 0.5}}}, "input"),
        ({"input": {"hate": 0.5}}, "input.hate"),
        ({"input": {"hate": {"ban": 0.5}}}, "input.hate"),
        ({"input": {"hate": {"allow": 0.5}}}, "input.hate"),
        ({"input": {"hate": {"block": 0}}}, "input.hate.block"),
        ({"input": {"hate": {"block": 1.1}}}, "input.hate.block"),
        ({"input": {"hate": {"block": float("nan")}}}, "input.hate.block"),
        ({"input": {"hate": {"block": True}}}, "input.hate.block"),
        ({"input": {"hate": {"block": "0.5"}}}, "input.hate.block"),
        ({"on_failure": {"input": "redact"}}, "on_failure.input"),
        ({"on_failure": {"everywhere": "block"}}, "on_failure"),
        ({"on_failure": "block"}, "on_failure"),
        ({"partial_output": "maybe"}, "partial_output"),
    ],
)
def test_what_is_no_policy_says_where(value: Any, where: str) -> None:
    with pytest.raises(BadPolicy) as caught:
        parsed(value)
    assert caught.value.where == where
    assert str(caught.value).startswith(where)


def test_a_changed_policy_shows_what_it_would_have_decided() -> None:
    past = [
        Judged("a", "input", {"hate": 0.6}, "note"),
        Judged("b", "input", {"hate": 0.9}, "block"),
        Judged("c", "input", {"secrets": 0.9}, "redact"),
        Judged("d", "output", {}, "allow"),
    ]
    assert replayed(parsed(POLICY), past) == []
    stricter = replayed(parsed({"input": {"hate": {"block": 0.5}}}), past)
    assert [(one.id, one.was, one.would_be.action, one.is_stricter) for one in stricter] == [
        ("a", "note", "block", True),
        ("c", "redact", "allow", False),
    ]
