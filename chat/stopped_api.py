"""REST of what policies have stopped of one's own, under /api/moderation."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Router, Schema

from chat import stopped
from chat.api_errors import ApiError
from chat.db import in_db
from chat.rights import rights_of
from moderation.reviewing import MAX_APPEAL_CHARS, CannotAppeal

router = Router()


class AppealIn(Schema):
    """Why it was wrong, for who looks at it."""

    text: str = Field(min_length=1, max_length=MAX_APPEAL_CHARS)


@router.get("/decisions")
async def list_decisions(request: HttpRequest) -> dict[str, Any]:
    """What was stopped of your questions and answers, newest first, and how a review went."""
    return {"decisions": await in_db(_values)(rights_of(request).user)}


@router.post("/decisions/{decision_id}/appeal")
async def appeal(request: HttpRequest, decision_id: UUID, data: AppealIn) -> dict[str, Any]:
    """Ask for a look at a decision, once."""
    try:
        row = await in_db(stopped.appeal_against)(rights_of(request).user, decision_id, data.text)
    except CannotAppeal as error:
        raise ApiError(409, "cannot_appeal", str(error)) from None
    return await in_db(stopped.value)(row)


def _values(user: Any) -> list[dict[str, Any]]:
    return [stopped.value(row) for row in stopped.decisions_of(user)]
