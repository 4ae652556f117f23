"""From a saved message to a running answer, and what follows when it has ended."""

from dataclasses import fields
from typing import Any

from chat import actions, history, notices, runs, titles
from chat.actions import Draft, Sent
from chat.asking import AnswerRequest, Sampling, TurnSoFar
from chat.db import in_db
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import Finished, LogEvent
from chat.models import Conversation, Generation
from chat.tools import tools_named

_is_draining = False


def stop_admitting() -> None:
    """From now on no new answer starts: the server is about to end."""
    global _is_draining
    _is_draining = True


def is_draining() -> bool:
    return _is_draining


async def send(user: Any, draft: Draft) -> Sent:
    """Save a message and start its answer.

    Raises ChatError, UnknownModel or WrongKind; then nothing was saved.
    """
    if _is_draining:
        raise ShuttingDown
    engine().require(draft.model, "chat")
    sent = await in_db(actions.send_message)(user, draft, lease_owner=runs.PROCESS_ID)
    if sent.is_new:
        await _start(sent.generation, sent.conversation, user.pk)
        await notices.conversation_changed(user.pk, sent.conversation.pk)
    return sent


async def take_up(
    generation: Generation, events: list[LogEvent], turn: TurnSoFar | None
) -> runs.Run:
    """Go on with an answer whose process died. The lease has to be ours already."""
    conversation = generation.conversation
    return await _start(generation, conversation, conversation.owner_id, tuple(events), turn)


async def _start(
    generation: Generation,
    conversation: Conversation,
    user_id: Any,
    events: tuple[LogEvent, ...] = (),
    turn: TurnSoFar | None = None,
) -> runs.Run:
    messages = await in_db(history.as_chat)(conversation, generation.message.parent_id)
    request = AnswerRequest(
        run_id=str(generation.pk),
        model=generation.model,
        messages=messages,
        user=str(user_id),
        weight=generation.params.get("weight", 1.0),
        sampling=_sampling_from(generation.params.get("sampling", {})),
        tools=tools_named(generation.params.get("tools", [])),
        events=events,
        turn=turn,
    )
    run = runs.Run(
        generation.pk,
        conversation_id=conversation.pk,
        message_id=generation.message_id,
        user_id=user_id,
    )
    run.events = list(events)
    runs.start(run, request, after=_after)
    return run


def _sampling_from(values: dict[str, Any]) -> Sampling:
    known = {f.name for f in fields(Sampling)}
    return Sampling(**{k: v for k, v in values.items() if k in known})


async def _after(run: runs.Run) -> None:
    await notices.conversation_changed(run.user_id, run.conversation_id)
    if isinstance(run.events[-1], Finished) and await titles.find_title(run.conversation_id):
        await notices.conversation_changed(run.user_id, run.conversation_id)
