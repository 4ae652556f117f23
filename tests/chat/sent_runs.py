"""Answers that were asked for, and the runs that write them, without a site."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING
from uuid import uuid4

from chat import actions, runs
from chat.actions import Sent
from chat.asking import AnswerRequest, Control
from chat.events import Delta, Event, LogEvent, Started, Stopped
from chat.rights import Rights
from chat.spans import Clock, Trace

if TYPE_CHECKING:
    from webapp.models import User

SAID: list[LogEvent] = [Started("vitrine-small", "r", 7), Delta("Hello there", 0, ids=(3, 4))]


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


async def until_stopped(_: object, control: Control) -> AsyncGenerator[Event, None]:
    """In the place of `answer`: says SAID, and goes on until it is stopped."""
    for event in SAID:
        yield event
    await control.stopped.wait()
    yield Stopped(len("Hello there"))


def begin(run: runs.Run) -> None:
    """Let it be written in this process."""

    async def after(_: runs.Run) -> None:
        return

    runs.start(run, AnswerRequest(str(run.id), "vitrine-small", [], user="1"), after)
