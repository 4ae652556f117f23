"""What came of judging some texts. Pure."""

from dataclasses import dataclass, field, replace
from typing import Any

from moderation.categories import Scores
from moderation.policies import Action, Verdict, by_strength

Failures = tuple[dict[str, str], ...]
"""Classifiers that could not be asked: {"classifier", "reason"}."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on some texts together, with what it rests on: the `scored` texts, of which
    `worst_text` is the one that it is about. `failed` are classifiers that could not be asked."""

    verdict: Verdict = field(default_factory=Verdict)
    scores: Scores = field(default_factory=dict)
    scored: tuple[tuple[str, Scores], ...] = ()
    worst_text: str = ""
    failed: Failures = ()
    took_ms: float = 0.0

    @property
    def _actions(self) -> set[Action]:
        return {self.verdict.action, *(one.action for one in self.verdict.reasons)}

    @property
    def stop(self) -> Action | None:
        """Whether the text does not go on, or not before its author is asked. What goes to review does
        go on, so a weaker reason beside it stops the text nevertheless."""
        actions = self._actions
        return "block" if "block" in actions else "ask" if "ask" in actions else None

    @property
    def redacts(self) -> bool:
        return "redact" in self._actions

    def without_redacting(self) -> "Outcome":
        """Blocked, where something would have to be taken out."""
        if not self.redacts:
            return self
        reasons = [
            replace(one, action="block") if one.action == "redact" else one
            for one in self.verdict.reasons
        ]
        reasons.sort(key=by_strength)
        verdict = replace(self.verdict, action="block", reasons=tuple(reasons))
        return replace(self, verdict=verdict)


def facts_of(outcome: Outcome) -> dict[str, Any]:
    """For the trace of the answer."""
    return {
        "action": outcome.verdict.action,
        "categories": [one.category for one in outcome.verdict.reasons],
        "has_failed": bool(outcome.failed),
        "took_ms": round(outcome.took_ms, 2),
    }
