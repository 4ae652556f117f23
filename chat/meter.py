"""How full a model's context would be if a draft were sent: counted, not estimated.

What is counted is what would be asked: the same plan, cut in the same way, through the same chat
template. Beginnings that stay the same from key to key are encoded once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any
from uuid import UUID

from django.conf import settings

from chat import access, history, making_pictures, personal, remembering
from chat.actions import check_length
from chat.db import in_db
from chat.engine import engine
from chat.kept import Kept
from chat.looking_up import most_tokens
from chat.models import Conversation
from chat.off_loop import off_loop
from chat.prompt_plan import Encode, Exchange, Limits, PromptPlan, fit, measure
from chat.rights import Rights
from chat.seeing import seen
from chat.setup import Setup
from chat.sources import NOTHING, Picked, kept_along, named
from chat.temporary import Said, exchanges_of, rows_of
from chat.tools import tools_named
from chat.untagged import untagged
from chat.values import Value
from inference import ChatMessage, ChatTokenizer, ContextTooLong, Image, prompt_room

_MAX_KEPT_TOKENS = 500_000  # of beginnings that may be asked for again
_DRAFT = "draft"

Ids = tuple[int, ...]


_kept: Kept[bytes, Ids] = Kept(_MAX_KEPT_TOKENS, len)
"""Ids of prompts by their content."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A message that might be sent. Without a conversation it begins one, with these three.

    `messages` are what is said already in a temporary chat, `picked` is what it is to be answered from.
    """

    text: str
    model: str
    conversation_id: str | None = None
    parent_id: str | None = None
    assistant_id: str | None = None
    system_prompt: str = ""
    messages: tuple[Said, ...] = ()
    picked: Picked = NOTHING
    parameters: dict[str, Any] | None = None
    tool_servers: tuple[str, ...] | None = None
    is_temporary: bool = False


async def meter(rights: Rights, sketch: Sketch) -> Value:
    """Tokens by segment, what would be left out, and what is kept for the answer. What is looked up only
    when it is sent counts with as much as it may take (`looked_up`).

    `context_tokens` is None for a model whose tokens another server counts.
    Raises NotFound, BadFrame, UnknownModel, WrongKind.
    """
    user, text, model = rights.user, sketch.text, sketch.model
    check_length(text)
    engine().require(model, "chat")
    if engine().is_upstream(model):
        return {"model": model, "context_tokens": None}
    plan, parameters, kept, tools = await in_db(_plan)(rights, sketch)
    tokenizer = await engine().tokenizer(model)
    most = min(engine().context_tokens(model), user.tier.context_tokens or 10**9)
    limits = Limits(most, prompt_room(most, parameters.get("max_tokens")))
    plan, picked = _asking(plan, text, sketch.picked.documents), sketch.picked
    if engine().sees_images(model):
        images = await seen(plan)
        plan = plan.with_images(images)
        unseen = tuple(id_ for id_ in picked.documents if id_ not in images)
        picked, kept = replace(picked, documents=unseen), tuple(k for k in kept if k not in images)
    looked_up = await in_db(_looked_up)(picked, kept, limits.prompt_tokens)
    encode = _encoder(tokenizer, model, [tool.schema() for tool in tools_named(tools)])
    return await off_loop(_measured, plan, encode, model, limits, looked_up)


def _plan(
    rights: Rights, sketch: Sketch
) -> tuple[PromptPlan, dict[str, Any], tuple[UUID, ...], tuple[str, ...]]:
    """The prompt up to where the message would come, the chat's parameters, which documents of
    questions before are searched again, and which tools are shown."""
    user = rights.user
    if sketch.conversation_id is None:
        assistant = sketch.assistant_id and access.as_uuid(sketch.assistant_id, "assistant")
        wanted = Setup(
            assistant or None,
            sketch.system_prompt,
            sketch.parameters,
            tool_servers=sketch.tool_servers,
        )
        setup = personal.setup_of(user, wanted, is_temporary=sketch.is_temporary)
        new = Conversation(owner=user, **setup)
        rows = rows_of(sketch.messages)
        plan = PromptPlan(exchanges_of(rows), system=history.system_text(new), memory=new.memory)
        tools = _tools(rights, new, sketch.model)
        if sketch.is_temporary:
            tools = making_pictures.without(tools)
        return plan, new.parameters, kept_along(rows, sketch.picked), tools
    conversation = access.conversation_for(user, sketch.conversation_id)
    parent = access.as_uuid(sketch.parent_id, "message") if sketch.parent_id else None
    path = history.branch_to(conversation, parent)
    plan = history.plan_on(conversation, path, sketch.model)
    tools = _tools(rights, conversation, sketch.model)
    return plan, conversation.parameters, kept_along(path, sketch.picked), tools


def _tools(rights: Rights, conversation: Conversation, model: str) -> tuple[str, ...]:
    return (*rights.tools, *remembering.tools_of(rights, conversation, [model]))


def _looked_up(picked: Picked, kept: Sequence[UUID], prompt_tokens: int) -> int:
    """As orchestrator.py has room for it. Raises NotFound."""
    if not picked and not kept:
        return 0
    named(picked)
    return most_tokens(picked, kept, min(settings.DOCUMENT_TOKENS, prompt_tokens // 2))


def _asking(plan: PromptPlan, text: str, attached: tuple[UUID, ...]) -> PromptPlan:
    """The plan with a question more, as it would be if it had been sent."""
    text = text.strip()
    if plan.exchanges and not plan.exchanges[-1].reply:
        last = plan.exchanges[-1]
        asked = replace(
            last,
            question=f"{last.question}\n\n{text}",
            attached=(*last.attached, *attached),
        )
        return replace(plan, exchanges=(*plan.exchanges[:-1], asked))
    draft = Exchange(_DRAFT, text, attached=attached)
    return replace(plan, exchanges=(*plan.exchanges, draft))


def _encoder(tokenizer: ChatTokenizer, model: str, schemas: list[dict[str, Any]]) -> Encode[Ids]:
    """As an answer's first turn encodes (engine_turn.py)."""

    def encode(messages: list[ChatMessage]) -> Ids:
        messages = untagged(messages)
        asked = json.dumps([model, schemas, messages], default=_named)
        key = blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        ids = _kept.find(key)
        if ids is None:
            ids = tokenizer.encode_chat(messages, tools=schemas)
            _kept.keep(key, ids)
        return ids

    return encode


def _named(image: Image) -> str:
    return blake2b(image.url.encode(), digest_size=16).hexdigest()


def _measured(
    plan: PromptPlan, encode: Encode[Ids], model: str, limits: Limits, looked_up: int
) -> Value:
    whole = {"model": model, "context_tokens": limits.context_tokens}
    try:
        shown, ids, looked_up = _fit_with_room(plan, encode, limits, looked_up)
    except ContextTooLong as error:
        return whole | {
            "prompt_tokens": error.num_prompt_tokens,
            "reserve_tokens": limits.reserve_tokens,
            "segments": [],
            "left_out": None,
            "is_too_long": True,
        }
    counts = measure(shown, encode, ids)
    draft = counts.pop("draft")
    segments = [*counts.items(), ("looked_up", looked_up), ("draft", draft)]
    left_out = shown.left_out
    return whole | {
        "prompt_tokens": len(ids) + looked_up,
        "reserve_tokens": limits.reserve_tokens,
        "segments": [{"name": name, "tokens": num} for name, num in segments if num],
        "left_out": left_out
        and {
            "before": left_out.before,
            "num_messages": left_out.num_messages,
            "is_new": plan.start < shown.start,
        },
        "is_too_long": False,
    }


def _fit_with_room(
    plan: PromptPlan, encode: Encode[Ids], limits: Limits, num_more: int
) -> tuple[PromptPlan, Ids, int]:
    """As `fit`, with room for so many tokens more, or for what is left where there is less."""
    kept = replace(limits, prompt_tokens=limits.prompt_tokens - num_more)
    try:
        return *fit(plan, encode, kept), num_more
    except ContextTooLong:
        shown, ids = fit(plan, encode, limits)
        return shown, ids, limits.prompt_tokens - len(ids)
