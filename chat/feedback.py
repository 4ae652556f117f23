"""What readers think of answers: a rating, reasons for a bad one, and words for those who run the site.

It is kept on the answer, as {"rating", "reasons", "comment", "at"}, goes where the answer goes (export,
deletion), and is not shown to any model.
"""

from enum import StrEnum
from typing import Any

from django.utils import timezone
from pydantic import Field

from chat import access, metrics
from chat.errors import BadRequest, StillWriting
from chat.models import Generation, Message, MessageStatus, Role
from chat.strict import Strict, text_of

MAX_COMMENT_CHARS = 2000


class Rating(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Reason(StrEnum):
    """What was wrong with an answer."""

    INCORRECT = "incorrect"
    NOT_FOLLOWED = "not_followed"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    SOURCES = "sources"
    REFUSED = "refused"
    OTHER = "other"


class FeedbackIn(Strict):
    """`reasons` belong to a bad rating."""

    rating: Rating
    reasons: list[Reason] = Field([], max_length=len(Reason))
    comment: text_of(MAX_COMMENT_CHARS) = ""  # type: ignore[valid-type]


def value_of(data: FeedbackIn) -> dict[str, Any]:
    """As it is kept. Raises BadRequest."""
    if data.rating == Rating.GOOD and data.reasons:
        raise BadRequest("Reasons belong to a bad rating.")
    return {
        "rating": data.rating.value,
        "reasons": sorted({reason.value for reason in data.reasons}),
        "comment": data.comment,
        "at": timezone.now().isoformat(),
    }


def rate(user: Any, message_id: object, data: FeedbackIn) -> Message:
    """Keep it in the place of what was said before. Raises NotFound, BadRequest or StillWriting."""
    value = value_of(data)
    row = access.message_for(user, message_id)
    if row.role != Role.ASSISTANT:
        raise BadRequest("Only answers are rated.")
    if row.status == MessageStatus.RUNNING:
        raise StillWriting
    Message.objects.filter(pk=row.pk).update(feedback=value)
    if (row.feedback or {}).get("rating") != value["rating"]:
        # An imported answer names any model; those that wrote one here are few.
        wrote = Generation.objects.filter(message=row.pk).values_list("model", flat=True).first()
        metrics.rated(wrote or "", value["rating"])
    return row


def unrate(user: Any, message_id: object) -> Message:
    """Forget it. Raises NotFound."""
    row = access.message_for(user, message_id)
    Message.objects.filter(pk=row.pk).update(feedback=None)
    return row


def checked(value: Any) -> dict[str, Any] | None:
    """That of an imported chat. Raises ValueError or TypeError."""
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != {"rating", "reasons", "comment", "at"}:
        raise ValueError
    if not isinstance(value["at"], str) or len(value["at"]) > 40:
        raise ValueError
    given = FeedbackIn(**{name: value[name] for name in ("rating", "reasons", "comment")})
    return {**value_of(given), "at": value["at"]}
