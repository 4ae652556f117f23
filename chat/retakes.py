"""Another answer beside one that is there: written anew, or on from where it was cut.

An answer that has ended never changes, so both are siblings of it. To go on is what is done after a
crash, too (recovery.py): the new run's log begins with what had been said.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext

from chat import remembering, run_log
from chat.access import conversation_for, message_for
from chat.actions import Sent, choose_path, touch
from chat.answer_rows import begin_answer, message_once, params_of, rights_now
from chat.engine import engine
from chat.errors import BadFrame, Conflict, StillWriting
from chat.events import Found, LogEvent
from chat.looking_up import passages_of
from chat.models import Conversation, Generation, Message, MessageStatus, Role
from chat.parts import text_of as said_in
from chat.parts import unfold
from chat.prompt_plan import Exchange, PromptPlan
from chat.rights import Rights
from moderation.models import Decision

Wish = Literal["shorter", "longer"]
WISHES: dict[str, str] = {
    "shorter": "Give your last answer again, much shorter.",
    "longer": "Give your last answer again, longer and with more detail.",
}


@dataclass(frozen=True, slots=True)
class Retake:
    """`answer` is the one to write anew. No model: the one that wrote it. `without`: passages of
    documents that it is not to be shown. `confirms`: the question goes to the model although a policy
    asks first."""

    client_id: str
    answer: UUID
    model: str | None = None
    wish: Wish | None = None
    tools: tuple[str, ...] = ()
    without: tuple[int, ...] = ()
    confirms: bool = False


def regenerate(rights: Rights, retake: Retake, *, lease_owner: str) -> Sent:
    """Begin another answer to the same question. The same client id again finds the first one.

    Raises NotFound, BadFrame, Conflict, SignedOut, UnknownModel, TooManyRuns or BudgetSpent.
    """
    with transaction.atomic():
        now = rights_now(rights)
        found = _begun_before(now.user, retake.client_id)
        if found is not None:
            return found
        conversation, question, answer = _locked(now.user, retake.answer)
        model = retake.model or answer.model
        touch(conversation, model=model)
        choose_path(conversation, question.pk, version=conversation.version)
        params = _params(conversation, now, retake.tools, model)
        said: list[LogEvent] = []
        if retake.wish and answer.text:
            params |= {"wish": retake.wish, "of": str(answer.pk)}
            said = found_for(answer)
        elif retake.without:
            params |= {"without": sorted(retake.without)}
        if retake.confirms:
            params |= {"confirmed": ["input"], "confirmed_texts": _asked_about(answer)}
        begun = begin_answer(now, question, model, params, lease_owner, retake.client_id)
        if said:
            run_log.append(begun.pk, lease_owner, 1, said)
        return Sent(conversation, question, [begun], is_new=True, said=tuple(said))


def go_on(
    rights: Rights, answer_id: UUID, client_id: str, *, tools: tuple[str, ...], lease_owner: str
) -> Sent:
    """Begin an answer with all that a cut one says; its run goes on behind these events.

    Raises as `regenerate` does.
    """
    with transaction.atomic():
        now = rights_now(rights)
        found = _begun_before(now.user, client_id)
        if found is not None:
            return found
        conversation, question, answer = _locked(now.user, answer_id)
        if not is_cut(answer):
            text = gettext("This answer was not cut off: there is nothing to go on with.")
            raise BadFrame(text)
        _check_goes_on(answer)
        touch(conversation)
        choose_path(conversation, question.pk, version=conversation.version)
        params = _params(conversation, now, tools, answer.model)
        said = [*found_for(answer), *unfold(answer.parts, answer.model)]
        params["num_brought"] = len(said)  # events, which this answer does not cost once more
        begun = begin_answer(now, question, answer.model, params, lease_owner, client_id)
        # Readers who come before its first event see what it goes on from.
        rows = Message.objects.filter(pk=begun.message_id)
        rows.update(
            parts=answer.parts, text=answer.text, brought=answer.brought, sources=answer.sources
        )
        begun.message.parts, begun.message.text = answer.parts, answer.text
        begun.message.brought = answer.brought
        run_log.append(begun.pk, lease_owner, 1, said)
        return Sent(conversation, question, [begun], is_new=True, said=tuple(said))


def _check_goes_on(answer: Message) -> None:
    """Our own engine goes on behind anything; other servers behind text, and not all of them. Raises
    BadFrame."""
    if not engine().is_upstream(answer.model):
        return
    is_text_only = all(part["type"] == "text" for part in answer.parts)
    if not engine().upstream_spec(answer.model).continues or not is_text_only:
        text = gettext(
            "This model's server cannot go on with an answer that was cut off. Ask for another answer."
        )
        raise BadFrame(text)


def is_cut(answer: Message) -> bool:
    """Whether an answer ended in the middle, by a stop, its length limit or a failure."""
    if not said_in(answer.parts):
        return False
    if answer.status in (MessageStatus.STOPPED, MessageStatus.FAILED):
        return True
    return answer.status == MessageStatus.COMPLETE and answer.finish_reason == "length"


def with_wish(plan: PromptPlan, generation: Generation) -> PromptPlan:
    """The prompt for an answer that should be like another one, but shorter or longer: that one has
    been given, and the wish is asked."""
    params = generation.params
    before = Message.with_deleted.filter(pk=params.get("of")).first() if "wish" in params else None
    if before is None or not plan.exchanges:
        return plan
    if before.found:
        plan = plan.with_documents(passages_of(Found.from_kept(before.found)))
    plan = given_again(plan, before.text, str(before.pk), params["wish"])
    return given_unjudged(plan) if before.edited or before.brought else plan


def found_for(answer: Message) -> list[LogEvent]:
    """What an answer was written from, for another one that is written from the same."""
    return [Found.from_kept(answer.found)] if answer.found else []


def given_again(plan: PromptPlan, text: str, exchange_id: str, wish: Wish) -> PromptPlan:
    """The prompt after an answer of this text, with the wish as the next question."""
    *earlier, asked = plan.exchanges
    given = replace(asked, reply=({"role": "assistant", "content": text},))
    exchanges = (*earlier, given, Exchange(exchange_id, WISHES[wish]))
    return replace(plan, exchanges=exchanges, num_asked=2)


def given_unjudged(plan: PromptPlan) -> PromptPlan:
    """The same of an answer that no model has written here."""
    *earlier, given, wish = plan.exchanges
    return replace(plan, exchanges=(*earlier, replace(given, unjudged=given.reply), wish))


def _asked_about(answer: Message) -> list[str]:
    """Hashes of the texts for which its author was asked, the question or others."""
    decision = (answer.error or {}).get("decision")
    if not decision:
        return []
    rows = Decision.objects.filter(pk=decision, owner=answer.conversation.owner_id, action="ask")
    return next((row.text_hashes or [] for row in rows), [])


def _params(
    conversation: Conversation, rights: Rights, tools: tuple[str, ...], model: str
) -> dict[str, Any]:
    tools = (*tools, *remembering.tools_of(rights, conversation, [model]))
    return {"tools": list(tools), "sampling": conversation.parameters, **params_of(rights)}


def _begun_before(user: Any, client_id: str) -> Sent | None:
    answer = message_once(user, client_id)
    if answer is None:
        return None
    generation = Generation.objects.filter(message=answer).first()
    if generation is None or answer.parent is None or answer.role != Role.ASSISTANT:
        raise Conflict("This message's id was used for something else.")
    return Sent(answer.conversation, answer.parent, [generation], is_new=False)


def _locked(user: Any, answer_id: UUID) -> tuple[Conversation, Message, Message]:
    """The conversation, nobody else's for now, with the question and the answer."""
    conversation = conversation_for(user, message_for(user, answer_id).conversation_id, lock=True)
    answer = message_for(user, answer_id)
    if answer.role != Role.ASSISTANT or answer.parent is None:
        raise BadFrame("Only an answer can be written anew.")
    if answer.status == MessageStatus.RUNNING:
        raise StillWriting
    answer.parent.conversation = conversation
    return conversation, answer.parent, answer
