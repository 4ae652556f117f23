"""What the older turns of a long chat said, by the model that answered in it.

A summary is made after an answer, before its history has to be cut, so that no reader waits for it.
It is kept as a row and taken up by the prompt when something has to go (chat/prompt_plan.py). The next
one is made of it and of what came since: what is older is not read again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction

from chat import history, prompt_plan
from chat.answer_rows import key_of
from chat.answer_state import texts_asked
from chat.asking import AnswerRequest, Sampling
from chat.db import in_db
from chat.engine import engine
from chat.events import Delta, Finished
from chat.models import Conversation, Generation, HistoryStrategy, Summary
from chat.off_loop import off_loop
from chat.orchestrator import answer
from chat.prompt_plan import Exchange, PromptPlan
from chat.screen import screen_of
from chat.screening import with_fit_documents, without_stopped
from chat.storable import storable
from chat.tools import tools_named
from inference import (
    ChatMessage,
    EngineError,
    about_tokens,
    newest_that_fit,
    prompt_room,
    regex_grammar,
)

REQUEST = "Summarise this conversation. Keep names, numbers, wishes and open questions."
MAX_TOKENS = 400
FULL_SHARE = 0.7  # of the room for prompts: from here on the next turns may need a cut
KEPT_SHARE = 0.5  # stays word for word
_SO_FAR = "so far"  # in the place of an id: a summary that has no row yet
_SAMPLING = Sampling(
    max_tokens=MAX_TOKENS, temperature=0.0, grammar=regex_grammar(r"(?s:.{1,4000})")
)

Count = Callable[[list[ChatMessage]], int]


@dataclass(frozen=True, slots=True)
class _Chat:
    """A conversation up to an answer, the answer included."""

    generation: Generation
    plan: PromptPlan
    num_told: int  # exchanges that the newest summary tells of


async def extend(answer_id: UUID) -> bool:
    """Summarise what will soon be too old to be shown, if the chat is kept that way and nearly full.

    True: there is a new summary. Raises nothing that the engine does: it is tried again after the
    next answer.
    """
    chat = await in_db(_read)(answer_id)
    if chat is None:
        return False
    try:
        room, count = await _room(chat)
        end = await off_loop(_end, chat, room, count)
        if end is None:
            return False
        text = await _summarise(chat, end, room, count)
    except EngineError:
        return False
    if not text:
        return False
    return await in_db(_save)(chat, end, text)


def _read(answer_id: UUID) -> _Chat | None:
    rows = Generation.objects.select_related("conversation", "message")
    generation = rows.filter(message=answer_id).first()
    if generation is None:
        return None
    conversation = generation.conversation
    if conversation.history_strategy != HistoryStrategy.SUMMARY:
        return None
    plan = history.plan_of(conversation, generation.message_id, generation.model)
    told = plan.summarised() or plan
    num_told = told.index_of(told.summary.until) if told.summary else 0
    return _Chat(generation, replace(plan, summary=told.summary), num_told or 0)


async def _room(chat: _Chat) -> tuple[int, Count]:
    """Tokens that a prompt may have, and what counts them: exactly where the engine is ours."""
    model = chat.generation.model
    params = chat.generation.params
    allowed = params.get("context_tokens")
    max_tokens = params.get("sampling", {}).get("max_tokens")
    if engine().is_upstream(model):
        limit = engine().upstream_spec(model).context_tokens or allowed or 8192
        return prompt_room(min(limit, allowed or limit), max_tokens), _about
    limit = engine().context_tokens(model)
    tokenizer = await engine().tokenizer(model)
    tools = [tool.schema() for tool in tools_named(params.get("tools", []))]
    room = prompt_room(min(limit, allowed or limit), max_tokens)
    return room, lambda messages: len(tokenizer.encode_chat(messages, tools=tools))


def _about(messages: list[ChatMessage]) -> int:
    return about_tokens(*(message["content"] for message in messages))


def _end(chat: _Chat, room: int, count: Count) -> int | None:
    """The first exchange to be kept word for word; None: nothing has to be summarised yet."""
    plan = replace(chat.plan, start=chat.num_told)
    if count(plan.messages()) < FULL_SHARE * room:
        return None

    def numbers(messages: list[ChatMessage]) -> range:
        return range(count(messages))

    found = newest_that_fit(
        lambda n: plan.newest(n).messages(),
        len(plan.exchanges) - plan.start,
        numbers,
        int(KEPT_SHARE * room),
    )
    end = len(plan.exchanges) - max(1, found[0] if found else 1)
    return end if end > chat.num_told else None


async def _summarise(chat: _Chat, end: int, room: int, count: Count) -> str:
    """The summary so far and the exchanges behind it, in as many steps as they need; or nothing."""
    plan, start = chat.plan, chat.num_told
    while start < end:
        step = await off_loop(_step, replace(plan, start=start), end, room - MAX_TOKENS, count)
        if step is None:
            return ""
        part, start = step
        text = await _ask(chat, part)
        if text == "":
            return ""
        plan = replace(plan, summary=_told(plan, text, start) if text else None)
    return plan.summary.text if plan.summary else ""


def _step(plan: PromptPlan, end: int, room: int, count: Count) -> tuple[PromptPlan, int] | None:
    """As many exchanges as one prompt holds, with the request behind them, and where it ends.

    It begins as the chat's prompt does wherever that begins with the same exchange, so that the
    engine has read it already.
    """
    request = Exchange("", REQUEST)
    stop = end
    while stop > plan.start:
        part = replace(plan, exchanges=(*plan.exchanges[:stop], request), keeps_first=False)
        if count(part.messages()) <= room:
            return part, stop
        stop = plan.start + (stop - plan.start) // 2
    return None


def _told(plan: PromptPlan, text: str, start: int) -> prompt_plan.Summary:
    return prompt_plan.Summary(_SO_FAR, text, until=plan.exchanges[start].id)


async def _ask(chat: _Chat, part: PromptPlan) -> str | None:
    """What the model makes of a part; "" where it fails, and None where policies leave nothing of it."""
    generation = chat.generation
    is_upstream = engine().is_upstream(generation.model)
    tools = () if is_upstream else tools_named(generation.params.get("tools", []))
    request = AnswerRequest(
        run_id=f"summary-{generation.pk}-{part.start}",
        model=generation.model,
        messages=[],
        user=str(generation.conversation.owner_id),
        weight=generation.params.get("weight", 1.0),
        sampling=Sampling(max_tokens=4 * MAX_TOKENS) if is_upstream else _SAMPLING,
        tool_schemas=tuple(tool.schema() for tool in tools),
        priority="background",
        source="summary",
        api_key=key_of(generation.params),
        conversation_id=generation.conversation_id,
    )
    screen = await screen_of(request)
    part = await without_stopped(screen, await with_fit_documents(screen, part))
    if part.stopped and part.start == len(part.exchanges) - 1:
        return part.summary.text if part.summary else None  # there is nothing to add to it
    text = ""
    asked = tuple(texts_asked(part))
    async for event in answer(replace(request, messages=part.messages(), asked=asked)):
        if isinstance(event, Delta) and event.part == "text":
            text += event.text
        elif isinstance(event, Finished) and event.reason != "content_filter":
            return storable(text).strip()
    return ""  # it failed, and half of a summary would be taken for the whole


def _save(chat: _Chat, end: int, text: str) -> bool:
    """Unless something that it tells of has been deleted since."""
    generation, exchanges = chat.generation, chat.plan.exchanges[: end + 1]
    with transaction.atomic():
        # Nobody deletes a message meanwhile (tree.delete).
        rows = Conversation.objects.select_for_update(no_key=True)
        conversation = rows.filter(pk=generation.conversation_id).first()
        if conversation is None:
            return False
        path = history.branch_to(conversation, generation.message_id)
        if _said(history.exchanges_of(path)[: end + 1]) != _said(exchanges):
            return False
        _, is_new = Summary.objects.get_or_create(
            until_id=exchanges[end].id,
            defaults={"conversation": conversation, "text": text, "model": generation.model},
        )
    return is_new


def _said(exchanges: Iterable[Exchange]) -> list[tuple[object, ...]]:
    return [(one.id, one.question, one.reply) for one in exchanges]
