"""Answers that were asked for, and the runs that write them, without a site."""

from typing import TYPE_CHECKING
from uuid import uuid4

from chat import actions, runs
from chat.actions import Sent
from chat.rights import Rights
from chat.spans import Clock, Trace

if TYPE_CHECKING:
    from webapp.models import User


def sent_by(user: "User", lease_owner: str = runs.PROCESS_ID) -> Sent:
    """In the scope of the user."""
    draft = actions.Draft(client_id=uuid4().hex, text="Hi", model="vitrine-small")
    return actions.send_message(Rights(user), draft, lease_owner=lease_owner)


def run_of(sent: Sent) -> runs.Run:
    return runs.Run(
        sent.generation.pk,
        conversation_id=sent.conversation.pk,
        message_id=sent.answer.pk,
        user_id=sent.conversation.owner_id,
        trace=Trace(Clock(), "1"),
    )
