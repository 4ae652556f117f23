"""The rows of moderation, where Django looks for them."""

from moderation.decision_models import Decision, Review, Strike
from moderation.policy_models import ModerationPolicy, PolicyVersion
from moderation.rule_models import EditableRule
from moderation.suspension_models import Suspension

__all__ = [
    "Decision",
    "EditableRule",
    "ModerationPolicy",
    "PolicyVersion",
    "Review",
    "Strike",
    "Suspension",
]
