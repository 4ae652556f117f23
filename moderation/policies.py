"""What is done about what a text holds: for each stage and category, from which probability on.

A policy is data: JSON that an operator edits, of this form (docs/moderation.md):

    {"input": {"hate": {"block": 0.8, "note": 0.5}, "secrets": {"redact": 0.5}},
     "output": {...}, "documents": {...}, "tools": {...},
     "on_failure": {"input": "block"}, "partial_output": "keep", "strikes": {"hate": 1}}

Pure: a verdict follows from the policy and the scores alone, so that old ones can be judged anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from moderation.categories import CATEGORIES, Scores

Stage = Literal["input", "output", "documents", "tools"]
Action = Literal["allow", "note", "redact", "ask", "review", "block"]
"""In the order of how much they do. `note`: it is logged. `redact`: what matched is taken out. `ask`:
the user is asked first. `review`: it goes on, and a person looks at it. `block`: it does not go on."""

STAGES: tuple[Stage, ...] = get_args(Stage)
ACTIONS: tuple[Action, ...] = get_args(Action)
_OTHER_FIELDS = ("on_failure", "partial_output", "strikes")


class BadPolicy(ValueError):
    """The message says what is wrong, and `where` at which place of the policy."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


@dataclass(frozen=True, slots=True)
class Reason:
    """A category that reached a threshold. `wanted` is what the policy says, where that could not be
    done and `action` took its place."""

    category: str
    probability: float
    threshold: float
    action: Action
    wanted: Action | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`action` is the strongest of the reasons', which come strongest first. `has_failed`: the text
    could not be judged, and the policy says what then."""

    action: Action = "allow"
    reasons: tuple[Reason, ...] = ()
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """`thresholds[stage][category][action]` is a probability. What names no threshold is allowed.

    `on_failure` is what happens to texts of a stage that could not be judged; `keeps_partial` whether
    the part of an answer that was shown before it was blocked stays. `strikes` are points that a blocked
    text of the stage "input" counts against its owner.
    """

    thresholds: Mapping[Stage, Mapping[str, Mapping[Action, float]]] = field(default_factory=dict)
    on_failure: Mapping[Stage, Action] = field(default_factory=dict)
    keeps_partial: bool = True
    strikes: Mapping[str, float] = field(default_factory=dict)

    def verdict(self, stage: Stage, scores: Scores, *, has_failed: bool = False) -> Verdict:
        """Where a classifier `has_failed`, what the others found still counts if it is stricter than
        what a failure leads to."""
        found = self._found(stage, scores)
        if not has_failed:
            return found
        of_failure = self.verdict_of_failure(stage)
        if rank(of_failure.action) > rank(found.action):
            return of_failure
        return replace(found, has_failed=True)

    def _found(self, stage: Stage, scores: Scores) -> Verdict:
        reasons = []
        for category, actions in self.thresholds.get(stage, {}).items():
            probability = scores.get(category, 0.0)
            reached = [(rank(one), one) for one, at in actions.items() if probability >= at]
            if reached:
                _, action = max(reached)
                reasons.append(Reason(category, probability, actions[action], action))
        reasons.sort(key=by_strength)
        return Verdict(reasons[0].action, tuple(reasons)) if reasons else Verdict()

    def verdict_of_failure(self, stage: Stage) -> Verdict:
        """Of a text that no classifier could be asked about."""
        action = self.on_failure.get(stage, "allow") if self.judges(stage) else "allow"
        return Verdict(action, has_failed=True)

    def may_stop(self, stage: Stage) -> bool:
        """Whether a text of the stage has to wait for its verdict: all else is known afterwards, too."""
        stopping = {action for own in self.thresholds.get(stage, {}).values() for action in own}
        fails = self.judges(stage) and self.on_failure.get(stage) == "block"
        return fails or not stopping.isdisjoint(("redact", "ask", "block"))

    def redacts(self, stage: Stage) -> bool:
        return any("redact" in actions for actions in self.thresholds.get(stage, {}).values())

    def points(self, verdict: Verdict) -> float:
        """Strikes for a blocked text: of its reasons to block, the worst."""
        return max(
            (
                self.strikes.get(one.category, 0.0)
                for one in verdict.reasons
                if one.action == "block"
            ),
            default=0.0,
        )

    def judges(self, stage: Stage) -> bool:
        """Whether anything of the stage could come to more than `allow`."""
        return bool(self.thresholds.get(stage))

    def as_json(self) -> dict[str, Any]:
        return {
            **{
                stage: {c: dict(a) for c, a in own.items()}
                for stage, own in self.thresholds.items()
            },
            "on_failure": dict(self.on_failure),
            "partial_output": "keep" if self.keeps_partial else "remove",
            "strikes": dict(self.strikes),
        }


def is_for_model(patterns: Sequence[str], model: str) -> bool:
    """Whether a policy with these names or shell patterns is for a model; without any it is for all."""
    return any(fnmatchcase(model, pattern) for pattern in patterns or ("*",))


def rank(action: Action) -> int:
    """How much is done: 0 for `allow`."""
    return ACTIONS.index(action)


def by_strength(reason: Reason) -> tuple[int, float, str]:
    """A key that sorts the strongest first."""
    return -rank(reason.action), -reason.probability, reason.category


def parsed(value: Any) -> Policy:
    """Raises BadPolicy."""
    fields = _object(value, "")
    _known(fields, (*STAGES, *_OTHER_FIELDS), "", "field")
    partial = fields.get("partial_output", "keep")
    if partial not in ("keep", "remove"):
        raise BadPolicy("partial_output", "This is 'keep' or 'remove'.")
    on_failure = _object(fields.get("on_failure", {}), "on_failure")
    _known(on_failure, STAGES, "on_failure", "stage")
    for stage, action in on_failure.items():
        if action not in ("allow", "review", "block"):
            raise BadPolicy(f"on_failure.{stage}", "This is 'allow', 'review' or 'block'.")
    given = {stage: _categories(fields[stage], stage) for stage in STAGES if stage in fields}
    thresholds = {stage: categories for stage, categories in given.items() if categories}
    return Policy(thresholds, on_failure, partial == "keep", _strikes(fields.get("strikes", {})))


def _strikes(value: Any) -> dict[str, float]:
    points = _object(value, "strikes")
    _known(points, CATEGORIES, "strikes", "category")
    for name, number in points.items():
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not 0 <= number <= 100:
            raise BadPolicy(f"strikes.{name}", "Points are from 0 to 100.")
    return {name: float(number) for name, number in points.items()}


def _categories(value: Any, where: str) -> dict[str, dict[Action, float]]:
    categories = _object(value, where)
    _known(categories, CATEGORIES, where, "category")
    return {name: _actions(actions, f"{where}.{name}") for name, actions in categories.items()}


def _actions(value: Any, where: str) -> dict[Action, float]:
    actions = _object(value, where)
    _known(actions, ACTIONS[1:], where, "action")
    for name, threshold in actions.items():
        is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if not is_number or not 0 < threshold <= 1:  # not NaN either
            raise BadPolicy(f"{where}.{name}", "A threshold is above 0 and at most 1.")
    return {name: float(threshold) for name, threshold in actions.items()}


def _object(value: Any, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise BadPolicy(where, "This is an object.")
    return value


def _known(given: Iterable[Any], known: Sequence[str], where: str, what: str) -> None:
    for name in given:
        if name not in known:
            raise BadPolicy(
                where, f"There is no {what} {str(name)[:100]!r}; there are {', '.join(known)}."
            )


@dataclass(frozen=True, slots=True)
class Judged:
    """A text of the past: what it scored, whether a classifier was away, and what the policy said."""

    id: str
    stage: Stage
    scores: Scores
    action: Action
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What would have been decided otherwise."""

    id: str
    was: Action
    would_be: Verdict

    @property
    def is_stricter(self) -> bool:
        return rank(self.would_be.action) > rank(self.was)


def replayed(policy: Policy, past: Iterable[Judged]) -> list[Difference]:
    """Which decisions the policy would have made otherwise, in their order."""
    judged = (
        (one, policy.verdict(one.stage, one.scores, has_failed=one.has_failed)) for one in past
    )
    return [
        Difference(one.id, one.action, verdict)
        for one, verdict in judged
        if verdict.action != one.action
    ]
