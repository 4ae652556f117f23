"""Temporary chats: the page holds the conversation, and nothing of it is written anywhere.

Each request brings all messages along; the answer runs in this process's memory, and is forgotten a
minute after its end, or when nobody has followed it for a while. So there is no row, no log, no title
and no news to other tabs; a restart of the server ends an answer where it was.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext

from chat import (
    answers,
    budgets,
    concurrency,
    history,
    holds,
    making_pictures,
    personal,
    revoked,
    runs,
)
from chat.actions import checked_text, first_title
from chat.admission import check_requests
from chat.answer_rows import message_once, rights_now, user_now
from chat.asking import AnswerRequest
from chat.db import in_db
from chat.draining import is_draining
from chat.engine import is_known_elsewhere
from chat.errors import BadFrame, Conflict, ShuttingDown
from chat.events import TERMINAL, Found, LogEvent
from chat.ids import uuid7
from chat.looking_up import passages_of
from chat.models import Conversation, Message, MessageStatus, Role
from chat.once import Once
from chat.parts import Parts, text_of, unfold
from chat.pricing import price_of
from chat.prompt import assistant_messages
from chat.prompt_plan import Exchange, PromptPlan
from chat.retakes import Wish, given_again, given_unjudged
from chat.rights import Rights
from chat.setup import AS_USUAL, Setup
from chat.shielded import done_or_undone, to_its_end
from chat.sources import NOTHING, Picked, Sources, named, sources_along
from chat.spans import Clock, Trace, new_trace_id
from chat.storable import is_storable
from chat.temporary_sources import found_in, picked_in
from chat.tools import tools_named
from retrieval.errors import RetrievalError

logger = logging.getLogger(__name__)

MAX_MESSAGES = 2_000
ORPHAN_S = 30.0  # how long an answer goes on that nobody follows
SETTLE_S = 1.0  # how long an end waits to be entered before it is shown
_PART_FIELDS = {
    "text": ("text",),
    "reasoning": ("text",),
    "tool_call": ("id", "name", "arguments"),
    "tool_result": ("id", "content"),
}
_TEXT_FIELDS = {  # their defaults, and how long they may be
    "id": ("", 100),
    "parent": ("", 100),
    "role": ("", 16),
    "status": (MessageStatus.COMPLETE.value, 16),
    "model": ("", 200),
    "finish_reason": ("", 32),
}
_FINAL = [status for status in MessageStatus if status != MessageStatus.RUNNING]


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a temporary chat, as its page holds it.

    `id` and `parent` are the page's own; the first message has no parent. `picked` are what a question
    is to be answered from, `found` is what an answer was written from.
    """

    id: str
    parent: str
    role: str
    status: str
    parts: Parts
    model: str
    finish_reason: str
    edited: bool
    picked: Picked = NOTHING
    found: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        return text_of(self.parts)


@dataclass(frozen=True, slots=True)
class Ask:
    """What to answer: the branch up to the question. With a wish, or to go on, the answer before ends
    the branch."""

    client_id: str
    model: str
    messages: tuple[Said, ...]
    wish: Wish | None = None
    goes_on: bool = False
    setup: Setup = AS_USUAL


class TemporaryRun(runs.Run):
    """A run that keeps its events in memory alone; what it took is entered all the same.

    It needs no database to go on, and nobody else could go on with it: while Postgres is away it is
    shown as ever.
    """

    client_id = ""
    model = ""
    num_brought = 0  # events of the answer that it goes on from
    is_kept = False
    settling: asyncio.Task[None] | None = None

    async def write(self, request: AnswerRequest) -> None:
        with concurrency.kept_alive(self.id):
            try:
                await super().write(request)
            except TimeoutError:
                logger.exception("nobody knows what run %s may still read", self.id)
                await self._fail()

    def __init__(self, run_id: UUID, **places: Any) -> None:
        super().__init__(run_id, **places)
        self._once = Once()

    async def _keep(self, events: list[LogEvent]) -> None:
        if isinstance(events[-1], TERMINAL):
            settling = self._settle_patiently([*self.events, *events])
            self.settling = asyncio.create_task(settling, name=f"settle {self.id}")
            await asyncio.wait({self.settling}, timeout=SETTLE_S)

    async def _settle_patiently(self, events: list[LogEvent]) -> None:
        try:
            await self._patiently(in_db(partial(self._settle, events)))
        except Exception:
            logger.exception("what run %s took is in no ledger", self.id)

    def _settle(self, events: list[LogEvent]) -> None:
        self._once(partial(self._enter, events))

    def _enter(self, events: list[LogEvent]) -> None:
        charge = budgets.charge_of(
            price_of(self.model),
            events[self.num_brought :],
            is_elsewhere=is_known_elsewhere(self.model),
        )
        budgets.settle(
            self.id, owner_id=self.user_id, api_key_id=None, model=self.model, charge=charge
        )

    async def _renew(self) -> None:
        pass

    async def _release(self) -> None:
        """The process ends, and the answer with it: what was delivered is entered."""
        await in_db(partial(self._settle, self.events))()


async def answer(rights: Rights, ask: Ask) -> TemporaryRun:
    """Begin an answer that leaves no trace. The same client id again finds the first one.

    Raises ChatError, UnknownModel or WrongKind.
    """
    user = rights.user
    if begun := _begun(user, ask.client_id):
        return begun
    rights.require_model(ask.model)
    await check_requests(rights)
    run_id = uuid7()

    async def let_go(_: object) -> None:
        await in_db(holds.let_go)(run_id)

    rights, setup, tools = await done_or_undone(in_db(_admit)(rights, run_id, ask), let_go)
    try:
        asked = await in_db(_asked)(ask, setup)
        begun = _begun(user, ask.client_id)  # meanwhile, by a repetition of the frame
    except BaseException:
        await to_its_end(let_go(None))
        raise
    if begun is not None:
        await let_go(None)
        return begun
    run = TemporaryRun(
        run_id,
        conversation_id=run_id,
        message_id=run_id,
        user_id=user.pk,
        trace=Trace(Clock(), new_trace_id()),
    )
    run.client_id, run.model = ask.client_id, ask.model
    run.events, run.num_brought = list(asked.before), len(asked.before)
    request = AnswerRequest(
        run_id=str(run_id),
        model=ask.model,
        messages=asked.plan.messages(),
        plan=asked.plan,
        sources=asked.sources,
        reads=asked.reads,
        max_context_tokens=rights.user.tier.context_tokens,
        user=str(user.pk),
        weight=rights.user.tier.weight,
        sampling=answers.sampling_from(setup.parameters),
        tools=tools_named(tools),
        events=tuple(asked.before),
        num_brought=len(asked.before),
        source="temporary",
        begun=tuple(assistant_messages(ask.messages[-1].parts)) if ask.goes_on else (),
        patience_s=runs.FLUSH_S,
    )
    runs.start(run, request, after=_forget_nothing)
    watch_orphan(run)
    return run


def watch_orphan(run: TemporaryRun) -> None:
    """Stop the answer once nobody has followed it for a while: its page is gone."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not run.is_running:
            return
        if run.num_followers == 0:
            run.stop(None)
        loop.call_later(ORPHAN_S, look)

    loop.call_later(ORPHAN_S, look)


def keep(user: Any, client_id: str, model: str, messages: list[Said], setup: Setup) -> Conversation:
    """Make a chat like any other of a temporary one. The same client id again finds the first one.

    Raises BadFrame, NotFound or SignedOut.
    """
    if not messages or messages[0].role != Role.USER:
        raise BadFrame(gettext("There is nothing to keep yet."))
    with transaction.atomic():
        now = user_now(user)
        made = message_once(now, client_id)
        if made is not None:
            return made.conversation
        conversation = Conversation.objects.create(
            owner=now,
            title=first_title(messages[0].text),
            model=model,
            **personal.setup_of(now, setup, is_temporary=True),
        )
        rows: dict[str, Message] = {}
        for number, said in enumerate(messages, start=1):
            if said.parent and said.parent not in rows:
                raise BadFrame("A message follows one that is not there.")
            rows[said.id] = Message.objects.create(
                conversation=conversation,
                parent=rows[said.parent] if said.parent else None,
                role=said.role,
                status=said.status,
                text=said.text,
                parts=said.parts,
                sources=_named(said.picked),
                found=said.found,
                model=said.model,
                finish_reason=said.finish_reason,
                edited=said.edited,
                brought=True,
                client_id=client_id if number == 1 else None,
                chosen=conversation.version,
            )
        return conversation


def said_of(values: Any) -> list[Said]:
    """Messages as a page sends them. Raises BadFrame for those that no chat could have."""
    if len(values) > MAX_MESSAGES:
        text = gettext("A temporary chat has at most %(n)s messages.")
        raise BadFrame(text % {"n": f"{MAX_MESSAGES:,}"})
    return [_said(value) for value in values]


def rows_of(branch: Iterable[Said]) -> list[Message]:
    """Never saved."""
    return [_row(said) for said in branch]


def exchanges_of(rows: list[Message]) -> tuple[Exchange, ...]:
    """What a prompt shows of a branch, in the scope of the user."""
    return history.exchanges_of(rows, history.documents_along(rows))


def _said(value: Any) -> Said:
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        raise BadFrame("A message is an object with parts.")
    parts = [_part(part) for part in value["parts"]]
    texts: dict[str, str] = {}
    for name, (default, limit) in _TEXT_FIELDS.items():
        text = value.get(name, default)
        if not isinstance(text, str) or len(text) > limit or not is_storable(text):
            raise BadFrame(f"'{name}' of a message has at most {limit} characters.")
        texts[name] = text
    said = Said(
        **texts,
        parts=parts,
        edited=value.get("edited") is True,
        picked=picked_in(value.get("sources")),
        found=found_in(value.get("found")),
    )
    if said.role not in Role.values or said.status not in _FINAL:
        raise BadFrame("A message has a role or a status that there is not.")
    if said.role == Role.USER:
        checked_text(said.text)
    return said


def _part(part: Any) -> dict[str, Any]:
    """With the fields that a part has, and no others: those nobody has looked at."""
    fields = _PART_FIELDS.get(str(part.get("type"))) if isinstance(part, dict) else None
    if fields is None:
        raise BadFrame("A message has a part of a kind that there is not.")
    for name in fields:
        if not isinstance(part.get(name), str) or not is_storable(part[name]):
            raise BadFrame(f"'{name}' of a part has to be a text.")
    known = {name: part[name] for name in ("type", *fields)}
    if part["type"] == "tool_result":
        known["is_error"] = part.get("is_error", False)
        if not isinstance(known["is_error"], bool):
            raise BadFrame("'is_error' of a part is true or false.")
    return known


def _admit(rights: Rights, run_id: UUID, ask: Ask) -> tuple[Rights, Conversation, tuple[str, ...]]:
    """What the run may take, what a new chat begins with, as a row that is never saved, and the tools.

    Of the user as of now: a socket's own row may be hours old.
    """
    with transaction.atomic():
        now = rights_now(rights)
        now.check_models([ask.model])
        concurrency.check_concurrent_runs(now)
        holds.reserve(now, [run_id], [ask.model], leased_until=concurrency.lease_end())
        fields = personal.setup_of(now.user, ask.setup, is_temporary=True)
        setup = Conversation(owner=now.user, **fields)
        return now, setup, making_pictures.without(now.tools_with(setup.tool_servers))


def _begun(user: Any, client_id: str) -> TemporaryRun | None:
    if is_draining():
        raise ShuttingDown
    return next((run for run in _runs_of(user) if run.client_id == client_id), None)


def _runs_of(user: Any) -> list[TemporaryRun]:
    """Those that are known, ended or not."""
    known = (run for run in runs.known() if isinstance(run, TemporaryRun))
    return [run for run in known if run.user_id == user.pk]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The prompt, what it is to be answered from, and what the answer begins with."""

    plan: PromptPlan
    sources: Sources | None = None
    reads: frozenset[str] = frozenset()
    before: tuple[LogEvent, ...] = ()


def _asked(ask: Ask, setup: Conversation) -> _Asked:
    """In the scope of the user, who may read what was picked. Raises BadFrame, Conflict and NotFound."""
    *earlier, last = ask.messages if ask.messages else (None,)
    needs_answer = bool(ask.wish or ask.goes_on)
    if last is None or (last.role == Role.ASSISTANT) != needs_answer:
        raise BadFrame("The last message has to be a question, or the answer to write anew.")
    rows = rows_of(said for said in (earlier if needs_answer else ask.messages) if said)
    reads = revoked.readable(revoked.versions_in(rows))  # before the plan reads it
    plan = PromptPlan(
        exchanges=exchanges_of(rows),
        system=history.system_text(setup),
        is_system_brought=personal.is_setup_of_others(setup),
    )
    if not plan.exchanges:
        raise BadFrame("An answer needs a question.")
    if not needs_answer:
        rows[-1].sources = named(last.picked)
        return _Asked(plan, sources_along(rows), reads)
    found = _found_for(last)
    if ask.wish:
        if found:
            plan = plan.with_documents(passages_of(found[0]))
        again = given_unjudged(given_again(plan, last.text, str(uuid7()), ask.wish))
        return _Asked(again, None, reads, found)
    if not last.text:
        raise Conflict(gettext("There is nothing to go on with."))
    return _Asked(plan, None, reads, (*found, *unfold(last.parts, ask.model)))


def _found_for(answer: Said) -> tuple[Found, ...]:
    """What an answer was written from, for another one that is written from the same."""
    return () if answer.found is None else (Found.from_kept(answer.found),)


def _named(picked: Picked) -> dict[str, Any] | None:
    """As it is kept; what is gone since is no longer told."""
    try:
        return named(picked)
    except RetrievalError:
        return None


def _row(said: Said) -> Message:
    """Never saved. By the page's own id, if it is one, its page finds what a model is not shown."""
    row = Message(
        role=said.role,
        status=said.status,
        text=said.text,
        parts=said.parts,
        sources=said.picked.to_json(),
        found=said.found,
        edited=said.role == Role.ASSISTANT,  # the page's word is a person's
    )
    with suppress(ValueError):
        row.pk = UUID(said.id)
    return row


async def _forget_nothing(run: runs.Run) -> None:
    """There is no title to find and nobody to tell."""
