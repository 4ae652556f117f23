"""From a saved message to a running answer, and what follows when it has ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any
from uuid import UUID

from structlog.contextvars import bound_contextvars, get_contextvars

from chat import (
    actions,
    first_sends,
    history,
    library,
    making_pictures,
    notices,
    remembering,
    retakes,
    revoked,
    run_log,
    runs,
    summaries,
    titles,
    warmth,
)
from chat.actions import Draft, Sent
from chat.admission import check_requests
from chat.answer_rows import key_of
from chat.asking import AnswerRequest, Sampling, TurnSoFar
from chat.cache_scope import CacheScope, cache_scope
from chat.db import in_db
from chat.draining import is_draining
from chat.errors import ShuttingDown
from chat.events import Finished, LogEvent, RunUsage
from chat.models import Conversation, Generation, Message, Role
from chat.persisting import AWAY
from chat.prompt import assistant_messages
from chat.prompt_plan import PromptPlan
from chat.retakes import Retake
from chat.rights import Rights
from chat.sources import Sources, sources_along
from chat.spans import Clock, Span, Trace, new_trace_id
from chat.tools import Tool, tools_named
from inference import ChatMessage
from moderation.text_hashes import text_hash


async def send(rights: Rights, draft: Draft, *, channel: str = "") -> Sent:
    """Save a message and start its answer. `channel` is that of the tab that asks, if it is one.

    Raises ChatError, UnknownModel or WrongKind; then nothing was saved.
    """
    models = (draft.model, *draft.beside)
    await _admit(rights, *models)
    if first_sends.is_plain(draft):
        first = await first_sends.save(rights, draft, runs.PROCESS_ID)
        if first is not None:
            return _begin(rights, first.sent, [Asked(first.plan, cache=first.cache)], channel)
    send = partial(actions.send_message, rights, draft, lease_owner=runs.PROCESS_ID)
    return _begin(rights, *await in_db(_with_plans)(send), channel)


async def regenerate(rights: Rights, retake: Retake) -> Sent:
    """Start another answer to the same question. Raises as `send` does."""
    await _admit(rights, retake.model)
    regenerate = partial(retakes.regenerate, rights, retake, lease_owner=runs.PROCESS_ID)
    return _begin(rights, *await in_db(_with_plans)(regenerate))


async def go_on(rights: Rights, answer_id: UUID, client_id: str, *, tools: tuple[str, ...]) -> Sent:
    """Start an answer that goes on where a cut one ended. Raises as `send` does."""
    await _admit(rights, None)
    owner = runs.PROCESS_ID
    go_on = partial(retakes.go_on, rights, answer_id, client_id, tools=tools, lease_owner=owner)
    return _begin(rights, *await in_db(_with_plans)(go_on))


async def _admit(rights: Rights, *models: str | None) -> None:
    """For each model one answer; None: the one of before, which the rows name."""
    if is_draining():
        raise ShuttingDown
    for model in models:
        if model is not None:
            rights.require_model(model)
    await check_requests(rights, len(models))


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is asked for, and what it is to be written from. `reads` are versions of documents
    that the plan shows; `confirmed` are hashes of texts that their author wanted to send all the
    same; `begun` as in AnswerRequest."""

    plan: PromptPlan
    sources: Sources | None = None
    reads: frozenset[str] = frozenset()
    cache: CacheScope | None = None
    confirmed: frozenset[str] = frozenset()
    begun: tuple[ChatMessage, ...] = ()


def _with_plans(save: Callable[[], Sent]) -> tuple[Sent, list[Asked]]:
    """What was saved, and the prompts of its answers, in one go: threads and connections cost, too."""
    sent = save()
    if not sent.is_new:
        return sent, []
    try:
        return sent, _asked_for(sent)
    except AWAY:
        raise  # the lease runs out, and who takes the answers up can prepare them
    except Exception:
        for generation in sent.generations:
            _end_unwritten(generation, sent.said)
        raise


def _end_unwritten(generation: Generation, said: Sequence[LogEvent]) -> None:
    """Of an answer that is saved, and that nobody will write: what it holds is let go."""
    failed, trace = runs.failed(), _new_trace(generation)
    run_log.finish(generation.pk, runs.PROCESS_ID, len(said) + 1, [failed], [*said, failed], trace)


def _asked_for(sent: Sent) -> list[Asked]:
    """Of each of its answers."""
    if sent.is_first:
        path = [sent.message]
        asked = Asked(
            history.plan_along(sent.conversation, path),
            sources_along(path),
            cache=cache_scope(sent.message),
        )
        return [asked] * len(sent.generations)
    return [_asked_of(sent.conversation, generation) for generation in sent.generations]


def _begin(rights: Rights, sent: Sent, asked: list[Asked], channel: str = "") -> Sent:
    """A tab that has begun a chat is told all of it; of another chat, what others have begun there."""
    if sent.is_new:
        for generation, each in zip(sent.generations, asked, strict=True):
            _start(generation, sent.conversation, rights.user.pk, each, sent.said)
        knows = channel if sent.is_first else ""
        notices.conversation_changed_soon(rights.user.pk, sent.conversation.pk, except_for=knows)
    return sent


async def take_up(
    generation: Generation,
    events: list[LogEvent],
    turn: TurnSoFar | None,
    trace: Trace | None,
    usage: RunUsage | None = None,
) -> runs.Run:
    """Go on with an answer whose process died, and whose turns before have taken `usage`. The lease has
    to be ours already."""
    conversation = generation.conversation
    asked = await in_db(_asked_of)(conversation, generation)
    owner_id = conversation.owner_id
    return _start(generation, conversation, owner_id, asked, tuple(events), turn, trace, usage)


def _start(
    generation: Generation,
    conversation: Conversation,
    user_id: Any,
    asked: Asked,
    events: tuple[LogEvent, ...] = (),
    turn: TurnSoFar | None = None,
    trace: Trace | None = None,
    usage: RunUsage | None = None,
) -> runs.Run:
    trace = trace or _new_trace(generation)
    request = AnswerRequest(
        run_id=str(generation.pk),
        model=generation.model,
        messages=asked.plan.messages(),
        plan=asked.plan,
        sources=asked.sources,
        reads=asked.reads,
        cache=asked.cache,
        max_context_tokens=generation.params.get("context_tokens"),
        user=str(user_id),
        weight=generation.params.get("weight", 1.0),
        priority=generation.params.get("priority", "interactive"),
        sampling=sampling_from(generation.params.get("sampling", {})),
        tools=_tools_of(generation, conversation),
        events=events,
        num_brought=generation.params.get("num_brought", 0),
        turn=turn,
        usage=usage or RunUsage(),
        clock=trace.clock,
        source="chat",
        api_key=key_of(generation.params),
        conversation_id=conversation.pk,
        message_id=generation.message_id,
        confirmed=tuple(generation.params.get("confirmed", ())),
        confirmed_texts=asked.confirmed,
        begun=asked.begun,
        patience_s=runs.FLUSH_S,
    )
    run = runs.Run(
        generation.pk,
        conversation_id=conversation.pk,
        message_id=generation.message_id,
        user_id=user_id,
        trace=trace,
    )
    run.events = list(events)
    for call_id, is_allowed in generation.params.get("decided", {}).items():
        run.control.decide(call_id, is_allowed)
    with bound_contextvars(request_id=trace.id):
        runs.start(run, request, after=_after)
    return run


def _tools_of(generation: Generation, conversation: Conversation) -> tuple[Tool, ...]:
    named = tools_named(generation.params.get("tools", []))
    named = remembering.bound(named, conversation)
    return making_pictures.bound(named, conversation, generation)


def _asked_of(conversation: Conversation, generation: Generation) -> Asked:
    path = history.branch_to(conversation, generation.message.parent_id)
    # Before the plan reads it: what goes in between is then missed, and ends the answer.
    reads = revoked.readable(revoked.versions_in(path))
    plan = retakes.with_wish(history.plan_on(conversation, path, generation.model), generation)
    is_wish = "wish" in generation.params  # that is asked of the answer before, and of nothing else
    without = generation.params.get("without", ())
    sources = None if is_wish else sources_along(path, without)
    answer = generation.message
    begun = assistant_messages(answer.parts) if answer.brought else ()
    return Asked(
        plan,
        sources,
        reads,
        confirmed=_confirmed_along(conversation, path),
        begun=tuple(begun),
    )


def _confirmed_along(conversation: Conversation, path: Sequence[Message]) -> frozenset[str]:
    """Of the questions for which their author said so, and of all that was asked about with them."""
    questions = {row.pk: row for row in path if row.role == Role.USER}
    asked = Generation.objects.filter(
        message__parent__in=list(questions), params__confirmed__contains=["input"]
    )
    user, hashes = str(conversation.owner_id), set[str]()
    for question_id, params in asked.values_list("message__parent", "params"):
        if question_id is not None:
            hashes.add(text_hash(user, history.question_of(questions[question_id])))
        hashes.update(params.get("confirmed_texts", ()))
    return frozenset(hashes)


def _new_trace(generation: Generation) -> Trace:
    """It has the id of what asked for the answer, so that one id leads through all logs."""
    trace_id = get_contextvars().get("request_id")
    trace = Trace(Clock(generation.created_at), trace_id or new_trace_id())
    trace.add(Span("accepted", 0.0, trace.clock.now_ms()))
    return trace


def sampling_from(values: dict[str, Any]) -> Sampling:
    known = {f.name for f in fields(Sampling)}
    return Sampling(**{k: v for k, v in values.items() if k in known})


async def _after(run: runs.Run) -> None:
    """What is remembered of the run; and the model's own small work, behind everybody's answers."""
    warmth.remember(run.conversation_id, run.user_id, run.events)
    if not run.is_seen:
        await in_db(library.mark_unread)(run.conversation_id)
    await notices.conversation_changed(run.user_id, run.conversation_id)
    if isinstance(run.events[-1], Finished) and await titles.find_title(run.conversation_id):
        await notices.conversation_changed(run.user_id, run.conversation_id)
    if isinstance(run.events[-1], Finished):
        await summaries.extend(run.message_id)
