"""What is asked of answer(): the request, where an interrupted one goes on, and the stop button."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from chat.cache_scope import CacheScope
from chat.document_tool import DocumentTool
from chat.engine import engine
from chat.events import LogEvent, RunUsage
from chat.prompt_plan import PromptPlan
from chat.sources import Sources
from chat.spans import Clock
from chat.tools import Tool
from inference import Caller, ChatMessage, Priority, PromptImage

MAX_DECIDED = 256
"""An answer has fewer calls of tools."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a caller asked for; None is the model's own default. See `SamplingParams`."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    num_logprobs: int | None = None
    grammar: str = ""


@dataclass(frozen=True, slots=True)
class TurnSoFar:
    """An interrupted engine turn: its prompt, and the tokens that were logged. `images` stand in the
    prompt, here without their data."""

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    images: tuple[PromptImage, ...] = ()


Source = Literal["chat", "temporary", "api", "title", "summary", "question"]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """One answer to write.

    `messages` begin with the system message; too many of them are an error. With a `plan` they are
    taken from it, and what does not fit is left out. `sources` are what its question is to be answered
    from; they are looked up first. `reads` are versions of documents that were found for earlier ones
    (revoked.py). With a `cache`, an answer that was given before is given again.
    `max_context_tokens` is what the user may fill of the model's context; None: all of it.
    `tools` are run here; `tool_schemas` are only shown to the model, and a call of one ends the
    answer with the reason "tool_calls". `document_tool` is one of these that is run here all the same.
    `upstream_options` are OpenAI's parameters for models on other servers; those of our own engine
    follow `sampling` alone.
    `user` and `weight` decide who gets how much of a busy engine, see `GenerateRequest`.
    `events` are those that were logged before an interruption, `turn` the turn they end in, and `usage`
    what the turns before that have taken. The first `num_brought` are another answer's, which this one
    goes on from.
    `source` is the way that it came, and `conversation_id` and `message_id` (of the answer) its place in
    a chat, for what moderation writes down; `api_key` is the key's id and prefix. `confirmed` are
    stages whose texts their author wants to send all the same, `confirmed_texts` are hashes
    (moderation.text_hashes) of those of which that was said before in the chat. `begun` is what the
    answer goes on from, where no model has written that here. `asked` is what of the `messages` was
    judged as what they ask, where that is not all of them.
    `patience_s` as in `GenerateRequest`: of text behind the first of it.
    `clock` counts the milliseconds of the answer's spans; without one they begin at 0 here.
    """

    run_id: str
    model: str
    messages: list[ChatMessage]
    user: str
    sampling: Sampling = field(default_factory=Sampling)
    tools: tuple[Tool, ...] = ()
    tool_schemas: tuple[dict[str, Any], ...] = ()
    document_tool: DocumentTool | None = None
    upstream_options: dict[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    priority: Priority = "interactive"
    plan: PromptPlan | None = None
    sources: Sources | None = None
    reads: frozenset[str] = frozenset()
    cache: CacheScope | None = None
    max_context_tokens: int | None = None
    events: tuple[LogEvent, ...] = ()
    num_brought: int = 0
    turn: TurnSoFar | None = None
    usage: RunUsage = field(default_factory=RunUsage)
    clock: Clock | None = None
    source: Source = "api"
    api_key: tuple[int, str] | None = None
    conversation_id: UUID | None = None
    message_id: UUID | None = None
    confirmed: tuple[str, ...] = ()
    confirmed_texts: frozenset[str] = frozenset()
    begun: tuple[ChatMessage, ...] = ()
    asked: tuple[str, ...] | None = None
    patience_s: float = 0.0

    @property
    def caller(self) -> Caller:
        """Who asks, for what is computed beside the answer."""
        return Caller(self.user, self.weight, self.priority)


class Control:
    """The stop button of a running answer."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self._generating: tuple[str, str] | None = None  # (model, request id) in the engine
        self._decided: dict[str, asyncio.Future[bool]] = {}

    @property
    def is_stopped(self) -> bool:
        return self.stopped.is_set()

    def stop(self) -> None:
        """End the answer at the engine's next step, or at once where a tool is awaited."""
        self.stopped.set()
        if self._generating is not None:
            engine().abort(*self._generating)

    @property
    def is_asking(self) -> bool:
        """Whether a call of a tool waits for the user's word."""
        return any(not asked.done() for asked in self._decided.values())

    def decide(self, call_id: str, is_allowed: bool) -> None:
        """The user's word about a call, which may not have been asked for yet. The first one counts."""
        if call_id not in self._decided and len(self._decided) >= MAX_DECIDED:
            return  # about calls that there are not
        asked = self._asked(call_id)
        if not asked.done():
            asked.set_result(is_allowed)

    def has_allowed(self, call_id: str) -> bool:
        """Whether a yes is known already."""
        asked = self._decided.get(call_id)
        return asked is not None and asked.done() and asked.result()

    async def decision(self, call_id: str) -> bool:
        """Wait for it; no, once the answer is stopped."""
        asked = self._asked(call_id)
        stop: asyncio.Future[bool] = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait({asked, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
        return asked.done() and asked.result()

    def _asked(self, call_id: str) -> "asyncio.Future[bool]":
        if call_id not in self._decided:
            self._decided[call_id] = asyncio.get_running_loop().create_future()
        return self._decided[call_id]

    @contextmanager
    def while_generating(self, model: str, request_id: str) -> Iterator[None]:
        """Within, a stop goes to this request of the engine."""
        self._generating = (model, request_id)
        try:
            yield
        finally:
            self._generating = None
