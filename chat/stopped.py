"""What policies have stopped of somebody's own, and their say in it. In the scope of the user."""

from typing import Any

from django.utils.translation import gettext

from chat import access
from chat.errors import NotFound
from chat.refusals import words_of
from moderation.decision_models import OUR_OWN, STOPPED
from moderation.models import Decision, Review
from moderation.reviewing import appeal

MAX_SHOWN = 100


def decisions_of(user: Any) -> list[Decision]:
    """The newest that did something, dry runs left out, and what nobody has asked or been told: titles,
    summaries, and questions that a model puts by themselves."""
    rows = Decision.objects.filter(owner=user.pk, is_dry_run=False).exclude(source__in=OUR_OWN)
    return list(rows.filter(action__in=STOPPED).order_by("-created_at")[:MAX_SHOWN])


def decision_of(user: Any, decision_id: object) -> Decision:
    """Raises NotFound, for those of others too."""
    rows = Decision.objects.filter(owner=user.pk, is_dry_run=False)
    row = rows.filter(pk=access.as_uuid(decision_id, "decision")).first()
    if row is None:
        raise NotFound("decision")
    return row


def appeal_against(user: Any, decision_id: object, text: str) -> Decision:
    """Raises NotFound, CannotAppeal."""
    appeal(decision_of(user, decision_id), text)
    return decision_of(user, decision_id)


def words_for(row: Decision) -> str:
    """What it was stopped for, as people say it."""
    reasons = [one["category"] for one in row.reasons if one["action"] != "note"]
    return ", ".join(map(words_of, reasons)) or gettext("it could not be checked")


def value(row: Decision) -> dict[str, Any]:
    """As /api tells it: no scores, which would show how to get around a threshold."""
    return {
        "id": str(row.pk),
        "created_at": row.created_at.isoformat(),
        "stage": row.stage,
        "action": row.action,
        "policy": row.policy_name,
        "categories": [one["category"] for one in row.reasons if one["action"] != "note"],
        "words": words_for(row),
        "conversation": str(row.conversation_id) if row.conversation_id else None,
        "message": str(row.message_id) if row.message_id else None,
        "review": row.review or None,
        "appeal": row.appeal or None,
        "notes": row.notes if row.review in (Review.UPHELD, Review.OVERTURNED) else "",
    }
