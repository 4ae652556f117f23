"""What an answer knows of itself while it is written, over all of its engine turns."""

from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Literal

from chat.asking import AnswerRequest
from chat.events import Finished, Found, LeftOut, PartKind, RunTimings, RunUsage, Stopped
from chat.json_texts import message_with_texts, texts_in, texts_of, with_texts
from chat.prompt import DEFAULT_SYSTEM_PROMPT
from chat.prompt_plan import PromptPlan
from chat.screen import Screen, texts_in_exchange
from chat.spans import Clock, Stopwatch
from inference import ChatMessage
from inference import Finished as EngineFinished

MAX_TURNS = 8  # of tool use; the last one gets no tools, so that the answer ends in words


def texts_asked(plan: PromptPlan) -> list[str]:
    """Of the plan what a person has written."""
    system = "" if plan.system == DEFAULT_SYSTEM_PROMPT else plan.system  # that nobody wrote
    return [
        system,
        plan.memory,
        *(text for one in plan.exchanges for text in texts_in_exchange(one)),
    ]


def _asked_of(message: ChatMessage) -> ChatMessage:
    return {**message, "content": ""} if message["role"] == "tool" else message


class AnswerState:
    """`said` grows by every turn; `seed` is drawn by the first; the counts go into the end.

    `plan` is what the model has been shown last: what is left out once stays so. `found` is what was
    found in documents. `in_doubt` are calls of tools that were begun before an interruption, perhaps.
    `watch` takes the time of what the answer does.
    """

    def __init__(self, request: AnswerRequest, screen: Screen) -> None:
        self.request = request
        self.screen = screen
        self.plan = request.plan
        self.said: list[ChatMessage] = []
        self.told_left_out: LeftOut | None = None
        self.found: Found | None = None
        tool = request.document_tool
        self.num_passages = tool.num_known if tool else 0  # that the model has looked up itself
        self.passage_tokens = 0
        self.num_prompt = 0  # tokens of the last turn's
        self.num_said_before = 0  # messages of `said` that it had
        self.seed = request.sampling.seed
        self.turn_index = 0
        self.in_doubt: frozenset[str] = frozenset()
        self.num_chars = {"text": 0, "reasoning": 0}
        self._usage = request.usage
        self._max_tokens = request.sampling.max_tokens
        self._timings = RunTimings()
        self._started_s = monotonic()
        self._thinking_since_ms: float | None = None
        self.watch = Stopwatch(request.clock or Clock())

    @property
    def messages(self) -> list[ChatMessage]:
        """The conversation, and what this answer has said and heard of tools so far."""
        return [*(self.plan.messages() if self.plan else self.request.messages), *self.said]

    def asked_texts(self) -> list[str]:
        """All that the model is to read and a person has written. Documents and tools' results are
        judged where they come in, and answers when they were given."""
        if self.request.asked is not None:
            return list(self.request.asked)
        if self.plan is not None:
            return [*texts_asked(self.plan), *texts_of(self.request.begun)]
        return [*texts_of(map(_asked_of, self.request.messages)), *self._texts_of_format()]

    def _texts_of_format(self) -> list[str]:
        """Of a program's tools, and of the form that another server's model is told to answer in."""
        is_theirs = self.request.source == "api"
        tools = [texts_in(one) for one in self.request.tool_schemas if is_theirs]
        options = texts_in(self.request.upstream_options)
        return ["\n".join(texts) for texts in [*tools, options]]

    @property
    def num_chars_to_redact(self) -> int:
        """How many characters `redact` reads, with each of the rules."""
        if not (self.screen.redacts("documents") or self.screen.redacts("input")):
            return 0
        return sum(len(one["content"]) for one in self.messages)

    def redact(self) -> None:
        """Take out of the prompt what a policy wants no model to read; the messages stay as they are."""
        if self.plan is not None and self.screen.redacts("documents"):
            self.plan = self.plan.with_documents_as(partial(self.screen.redacted, "documents"))
        if not self.screen.redacts("input"):
            return
        redacted = partial(self.screen.redacted, "input")
        request = self.request
        self.request = replace(
            request,
            messages=[message_with_texts(message, redacted) for message in request.messages],
            tool_schemas=tuple(with_texts(one, redacted) for one in request.tool_schemas),
            upstream_options=with_texts(request.upstream_options, redacted),
        )
        if self.plan is not None:
            self.plan = self.plan.with_texts(redacted)

    def wrote(self, part: PartKind) -> None:
        """The first call is the answer's time to first token; what is no reasoning ends a thought."""
        if not self._timings.ttft_ms:
            self._timings = replace(self._timings, ttft_ms=self._elapsed_ms())
        if part != "reasoning":
            self.end_thought()
        elif self._thinking_since_ms is None:
            self._thinking_since_ms = self._elapsed_ms()

    def end_thought(self) -> None:
        if self._thinking_since_ms is None:
            return
        took_ms = self._elapsed_ms() - self._thinking_since_ms
        self._thinking_since_ms = None
        self._timings = replace(self._timings, thinking_ms=self._timings.thinking_ms + took_ms)

    def add_tool_time(self, took_ms: float) -> None:
        self._timings = replace(self._timings, tools_ms=self._timings.tools_ms + took_ms)

    def account(self, end: EngineFinished) -> None:
        """Add the counts of an engine turn."""
        usage, timings = end.usage, end.timings
        self.num_prompt, self.num_said_before = usage.prompt_tokens, len(self.said)
        self._usage = RunUsage(
            self._usage.prompt_tokens + usage.prompt_tokens,
            self._usage.cached_tokens + usage.cached_tokens,
            self._usage.completion_tokens + usage.completion_tokens,
        )
        self._timings = replace(
            self._timings,
            queued_ms=self._timings.queued_ms + timings.queued_ms,
            prefill_ms=self._timings.prefill_ms + timings.prefill_ms,
            decode_ms=self._timings.decode_ms + timings.decode_ms,
            stop_ms=timings.stop_ms,
            engine_ms=self._timings.engine_ms + timings.engine_ms,
        )

    @property
    def is_last_turn(self) -> bool:
        return self.turn_index >= MAX_TURNS - 1

    def turn_over(self) -> None:
        """Prepare the next one: it may write what is left, and nothing forces it to call again. In the
        last one nothing can be called."""
        self.turn_index += 1
        tool, asked = self.request.document_tool, self.request.sampling
        if tool is None:
            return
        most = self._max_tokens
        left = most and max(1, most - self._usage.completion_tokens)
        options = dict(self.request.upstream_options)
        options.pop("tool_choice", None)
        grammar = tool.last_grammar if self.is_last_turn else tool.later_grammar
        self.request = replace(
            self.request,
            sampling=replace(asked, max_tokens=left, grammar=grammar),
            upstream_options=options,
        )

    def finished(
        self,
        reason: Literal["stop", "length", "tool_calls", "content_filter"],
        stop: str | None = None,
    ) -> Finished:
        return Finished(reason, self._usage, self._final_timings(), stop)

    def stopped(self) -> Stopped:
        return Stopped(self.num_chars["text"], self._usage, self._final_timings())

    def _final_timings(self) -> RunTimings:
        self.end_thought()
        return replace(self._timings, total_ms=self._elapsed_ms())

    def _elapsed_ms(self) -> float:
        return (monotonic() - self._started_s) * 1e3
