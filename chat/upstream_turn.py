"""One answer of another server's model: the conversation goes there as messages, text comes back."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from chat.answer_state import AnswerState
from chat.asking import Control
from chat.engine import engine
from chat.events import Delta, Event, Failed, LogEvent, Phase, Started, ToolCall
from chat.prompt_plan import fit
from chat.turn import Turn
from chat.untagged import untagged, untagged_value
from inference import (
    Asked,
    Call,
    ChatMessage,
    ChatRequest,
    ContextTooLong,
    Said,
    Segment,
    Text,
    Timings,
    Usage,
    about_image_tokens,
    about_prompt_tokens,
    about_tokens,
)
from inference import Failed as EngineFailed
from inference import Finished as EngineFinished


class UpstreamTurn(Turn):
    """A turn of a model whose tokens we do not see.

    Where the process died in the middle of an answer, a server that can go on behind a text does;
    another would write a different one, so the answer ends where it was seen.
    """

    def __init__(self, state: AnswerState, control: Control, earlier: list[LogEvent]) -> None:
        super().__init__(state, control, earlier)
        self._num_earlier = len(earlier)

    async def events(self) -> AsyncGenerator[Event, None]:
        begun = self._begun()
        if begun is None:
            yield self._interrupted()
            return
        if not any(isinstance(event, Started) for event in self.logged):
            yield self.log(self._started())
        self._leave_out_what_cannot_fit()
        while True:
            if left_out := self.newly_left_out():
                yield left_out
            if self.control.is_stopped:
                self.end = EngineFinished("abort", Usage(), Timings())
                return
            failed: EngineFailed | None = None
            async with aclosing(self._ask(begun)) as events:
                async for event in events:
                    if isinstance(event, EngineFailed):
                        failed = event
                    else:
                        yield event
            if failed is None:
                return
            is_overflow = failed.code == ContextTooLong.code and not self._has_written()
            if not (is_overflow and self._leave_out_older_half()):
                yield Failed(failed.code, failed.message, failed.retry_after_s, failed.param)
                return

    async def _ask(self, begun: str) -> AsyncGenerator[Event | EngineFailed, None]:
        request = self._request(begun)
        turn = self.state.turn_index
        with self.control.while_generating(request.model, request.request_id):
            async with aclosing(engine().chat(request)) as updates:
                async for update in updates:
                    match update:
                        case Asked(host):
                            self.state.watch.begin("asking", turn=turn, name=host)
                            num = about_prompt_tokens(request)
                            yield Phase("asking", detail=host, done=num, total=num)
                        case Said(segments):
                            self.state.watch.begin("decode", turn=turn)
                            said = segments if request.tools else _as_text(segments)
                            for event in self.show(said):
                                yield event
                            yield Phase("decode")
                        case EngineFinished(reason=reason, usage=usage):
                            self.state.watch.note(reason=reason, tokens=usage.completion_tokens)
                            self.state.watch.end()
                            self.end = update
                        case EngineFailed():
                            yield update

    # --- what is asked ----------------------------------------------------------------------------

    def _request(self, begun: str) -> ChatRequest:
        request = self.state.request
        tools = self._shown_tools()
        options = self._options()
        if not tools:
            options.pop("tool_choice", None)
            options.pop("parallel_tool_calls", None)
        return ChatRequest(
            request_id=f"{request.run_id}.{self.state.turn_index}",
            model=request.model,
            messages=tuple(untagged(self.state.messages)),
            tools=tools,
            options=options,
            begun=untagged_value(begun),
        )

    def _shown_tools(self) -> tuple[dict[str, Any], ...]:
        is_capable = engine().upstream_spec(self.state.request.model).has_tools
        return tuple(self.tool_schemas) if is_capable else ()

    def _options(self) -> dict[str, Any]:
        """What was asked for, by OpenAI's names; what was not is the server's to choose."""
        asked = self.state.request.sampling
        options: dict[str, Any] = {
            "max_tokens": self._max_tokens_left(asked.max_tokens),
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "top_k": asked.top_k,
            "min_p": asked.min_p,
            "seed": asked.seed,
            "repetition_penalty": asked.repetition_penalty,
            "stop": list(asked.stop) or None,
            "stop_token_ids": list(asked.stop_token_ids) or None,
            "ignore_eos": asked.ignore_eos or None,
            "min_tokens": asked.min_tokens or None,
            "presence_penalty": asked.presence_penalty or None,
            "frequency_penalty": asked.frequency_penalty or None,
            "logit_bias": {str(token): bias for token, bias in asked.logit_bias} or None,
            **untagged_value(self.state.request.upstream_options),
        }
        return {name: value for name, value in options.items() if value is not None}

    def _max_tokens_left(self, max_tokens: int | None) -> int | None:
        """Less what this turn had said, about, when it was interrupted."""
        request = self.state.request
        num_brought = max(0, request.num_brought - (len(request.events) - self._num_earlier))
        said = self.logged[num_brought : self._num_earlier]
        num_said = about_tokens(*(event.text for event in said if isinstance(event, Delta)))
        return None if max_tokens is None else max(0, max_tokens - num_said)

    def _started(self) -> Started:
        """The server draws the seed where none was asked for, and keeps it to itself."""
        seed = self.state.seed or 0
        return Started(self.state.request.model, "", seed, self.state.turn_index)

    # --- an interrupted answer --------------------------------------------------------------------

    def _begun(self) -> str | None:
        """The text so far that the server is to go on with; None where it cannot."""
        written = [event for event in self.logged if isinstance(event, Delta) and event.text]
        if not written:
            return ""
        continues = engine().upstream_spec(self.state.request.model).continues
        is_text_only = all(event.part == "text" for event in written)
        if not continues or not is_text_only or self._has_called():
            return None
        return "".join(event.text for event in written)

    def _has_written(self) -> bool:
        return any(isinstance(event, Delta) and event.text for event in self.logged)

    def _has_called(self) -> bool:
        return any(isinstance(event, ToolCall) for event in self.logged)

    @staticmethod
    def _interrupted() -> Failed:
        message = "Vitrine was interrupted, and this model's server cannot go on in mid-answer."
        return Failed("interrupted", message)

    # --- what fits --------------------------------------------------------------------------------

    def _leave_out_what_cannot_fit(self) -> None:
        """Some servers cut a long prompt at its beginning without a word, the system prompt first."""
        context_tokens = engine().upstream_spec(self.state.request.model).context_tokens
        context_tokens = context_tokens or self.state.request.max_context_tokens
        if context_tokens is None or self.state.plan is None:
            return
        said, shown_tools = self.state.said, self._shown_tools()
        # The last turn is never refused by an estimate: the server counts right.
        self.state.plan, _ = fit(
            self.state.plan,
            lambda shown: (
                range(0) if _num_users(shown) < 2 else _about_tokens([*shown, *said], shown_tools)
            ),
            self.limits(context_tokens),
        )

    def _leave_out_older_half(self) -> bool:
        """Leave out the older half of the exchanges. False: the caller forbids it, or none can go."""
        plan = self.state.plan.without_older_half() if self.state.plan else None
        if plan is not None:
            self.state.plan = plan
        return plan is not None


def _as_text(segments: Sequence[Segment]) -> list[Segment]:
    """With calls as texts: of a server that calls though no tool was offered."""
    return [
        Text(f"{one.name}({one.arguments})") if isinstance(one, Call) else one for one in segments
    ]


def _num_users(messages: list[ChatMessage]) -> int:
    return sum(message["role"] == "user" for message in messages)


def _about_tokens(messages: list[ChatMessage], tools: Sequence[dict[str, Any]]) -> range:
    """As many numbers as the messages and the tools have tokens, about."""
    schemas = (json.dumps(tool, ensure_ascii=False) for tool in tools)
    texts = about_tokens(*(message["content"] for message in messages), *schemas)
    return range(texts + about_image_tokens(messages))
