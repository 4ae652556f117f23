"""/api for what readers think of answers."""

from django.http import HttpRequest
from ninja import Router

from chat import feedback, notices
from chat.db import in_db
from chat.feedback import FeedbackIn

router = Router()


@router.put("/messages/{message_id}/feedback", response={204: None})
async def rate_answer(request: HttpRequest, message_id: str, data: FeedbackIn) -> tuple[int, None]:
    """Say what you think of an answer, in the place of what you said before.

    Those who run this site see the rating, its reasons and your comment, and not the chat.
    """
    row = await in_db(feedback.rate)(request.user, message_id, data)
    await notices.conversation_changed(request.user.pk, row.conversation_id)
    return 204, None


@router.delete("/messages/{message_id}/feedback", response={204: None})
async def unrate_answer(request: HttpRequest, message_id: str) -> tuple[int, None]:
    """Take it back."""
    row = await in_db(feedback.unrate)(request.user, message_id)
    await notices.conversation_changed(request.user.pk, row.conversation_id)
    return 204, None
