"""One pass through the engine: a prompt is built, and what the model writes becomes events."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from chat import prompt
from chat.answer_state import AnswerState
from chat.asking import Control, TurnSoFar
from chat.engine import engine
from chat.events import Delta, Event, Failed, LogEvent, PartKind, Phase, Started, ToolCall
from chat.off_loop import off_loop
from chat.storable import storable
from inference import (
    AnswerParser,
    Call,
    ChatMessage,
    ChatTokenizer,
    ContextTooLong,
    GenerateRequest,
    Loading,
    Prefill,
    PromptLogprobs,
    Queued,
    Reasoning,
    SamplingParams,
    Segment,
    Text,
    Timings,
    TokenLogprob,
    Tokens,
    Update,
    Usage,
    behind_thinking,
    opens_thinking,
)
from inference import Failed as EngineFailed
from inference import Finished as EngineFinished

MAX_TURNS = 8  # of tool use; the last one gets no tools, so that the answer ends in words
DEFAULT_MAX_TOKENS = 4096
_TAIL_TOKENS = 16


class Turn:
    """`end` is set when the engine finished or stopped; None after events() means it failed.

    `logged` are the turn's events, `earlier` ones included; `calls` the tool calls among them.
    """

    def __init__(
        self,
        state: AnswerState,
        control: Control,
        tokenizer: ChatTokenizer,
        so_far: TurnSoFar | None,
        earlier: list[LogEvent],
    ) -> None:
        self.state = state
        self.control = control
        self.tokenizer = tokenizer
        self.so_far = so_far
        self.end: EngineFinished | None = None
        self.calls: list[ToolCall] = []
        self.logged = list(earlier)

    async def events(self) -> AsyncGenerator[Event, None]:
        prompt_ids = self.so_far.prompt_ids if self.so_far else await self._build_prompt()
        tail = self._tail(prompt_ids)
        params = self._sampling_params(tail)
        parser = AnswerParser(self._template_read(tail), tail, self._tool_schemas())
        output_ids: tuple[int, ...] = ()
        if self.so_far is not None:
            output_ids = self.so_far.output_ids
            parser.feed(self.tokenizer.replay(output_ids, params.stop, params.min_tokens))
        else:
            yield self._log(self._started(params, prompt_ids))
        if self.control.is_stopped:
            self.end = EngineFinished("abort", Usage(len(prompt_ids), 0, 0), Timings())
            return
        request = self._engine_request(prompt_ids, output_ids, params)
        with self.control.while_generating(request.model, request.request_id):
            async with aclosing(engine().generate(request)) as updates:
                async for update in updates:
                    for event in self._hear(update, parser):
                        yield event

    def _hear(self, update: Update, parser: AnswerParser) -> list[Event]:
        match update:
            case Loading(phase, fraction):
                return [Phase("loading", progress=fraction, detail=phase)]
            case Queued(position, wait_s):
                return [Phase("queued", position=position, wait_s=wait_s)]
            case Prefill(done, total, cached):
                return [Phase("prefill", done=done, total=total, cached=cached)]
            case PromptLogprobs():
                return []
            case Tokens(text, ids, num_output, tokens_per_s, logprobs):
                decode = Phase("decode", tokens=num_output, tokens_per_s=tokens_per_s)
                return [*self._show(parser.feed(text), ids, logprobs), decode]
            case EngineFinished():
                self.end = update
                return [*self._show(parser.finish(), ())]
            case EngineFailed(code, message, retry_after_s, param):
                return [Failed(code, message, retry_after_s, param)]

    # --- what the model writes ------------------------------------------------------------------

    def _show(
        self,
        segments: list[Segment],
        ids: tuple[int, ...],
        logprobs: tuple[TokenLogprob, ...] = (),
    ) -> list[LogEvent]:
        """Segments as events. The first delta carries the ids, if need be with an empty text."""
        events: list[LogEvent] = []
        if ids and not (segments and isinstance(segments[0], Text | Reasoning)):
            segments = [Text(""), *segments]
        for segment in segments:
            match segment:
                case Text(text):
                    events.append(self._delta("text", text, ids, logprobs))
                case Reasoning(text):
                    events.append(self._delta("reasoning", text, ids, logprobs))
                case Call(name, arguments):
                    call_id = f"call_{secrets.token_hex(8)}"
                    call = ToolCall(call_id, storable(name), storable(arguments))
                    self.calls.append(call)
                    events.append(self._log(call))
            ids, logprobs = (), ()
        return events

    def _delta(
        self,
        part: PartKind,
        text: str,
        ids: tuple[int, ...],
        logprobs: tuple[TokenLogprob, ...],
    ) -> LogEvent:
        text = storable(text)
        delta = Delta(text, self.state.num_chars[part], part, ids, logprobs)
        self.state.num_chars[part] += len(text)
        if text:
            self.state.wrote_text()
        return self._log(delta)

    def _log(self, event: LogEvent) -> LogEvent:
        self.logged.append(event)
        return event

    # --- what the engine is asked ---------------------------------------------------------------

    async def _build_prompt(self) -> tuple[int, ...]:
        """Token ids of the turn's prompt; older turns are dropped where not all of them fit."""
        request = self.state.request
        limit = engine().context_tokens(request.model)
        if not request.may_drop_turns:
            ids = await off_loop(self._encode, self.state.messages)
            if len(ids) >= limit:
                raise ContextTooLong(num_prompt_tokens=len(ids), max_context_tokens=limit)
            return ids
        # A quarter of the context is kept for the answer, up to a half where more was asked for.
        asked = request.sampling.max_tokens
        reserve = min(asked, limit // 2) if asked else limit // 4
        self.state.messages, ids = await off_loop(
            prompt.fit,
            self.state.messages,
            self._encode,
            limit - reserve,
            max_context_tokens=limit,
        )
        return ids

    def _encode(self, messages: list[ChatMessage]) -> tuple[int, ...]:
        return self.tokenizer.encode_chat(messages, tools=self._tool_schemas())

    def _tool_schemas(self) -> list[dict[str, Any]]:
        if self.state.turn_index >= MAX_TURNS - 1:
            return []
        request = self.state.request
        return [tool.schema() for tool in request.tools] + list(request.tool_schemas)

    def _tail(self, prompt_ids: tuple[int, ...]) -> str:
        """The end of the prompt as text: enough to see what the template began for the answer."""
        return self.tokenizer.decode(list(prompt_ids[-_TAIL_TOKENS:]))

    def _template_read(self, prompt_tail: str) -> str:
        """The chat template whose marks the answer is read by: none, where a grammar leaves nothing
        but text. A string in JSON may well speak of <think>."""
        template = self.tokenizer.chat_template
        is_free = not self.state.request.sampling.grammar or bool(self._tool_schemas())
        return template if is_free or opens_thinking(template, prompt_tail) else ""

    def _sampling_params(self, prompt_tail: str) -> SamplingParams:
        asked = self.state.request.sampling
        grammar = asked.grammar
        if grammar and opens_thinking(self.tokenizer.chat_template, prompt_tail):
            grammar = behind_thinking(grammar)
        default = engine().sampling_defaults(self.state.request.model)
        if self.state.seed is None:
            self.state.seed = secrets.randbits(63)
        return SamplingParams(
            max_tokens=asked.max_tokens or DEFAULT_MAX_TOKENS,
            seed=self.state.seed,
            temperature=default.temperature if asked.temperature is None else asked.temperature,
            top_p=default.top_p if asked.top_p is None else asked.top_p,
            top_k=default.top_k if asked.top_k is None else asked.top_k,
            min_p=default.min_p if asked.min_p is None else asked.min_p,
            stop=asked.stop,
            stop_token_ids=asked.stop_token_ids,
            ignore_eos=asked.ignore_eos,
            min_tokens=asked.min_tokens,
            presence_penalty=asked.presence_penalty,
            frequency_penalty=asked.frequency_penalty,
            repetition_penalty=asked.repetition_penalty or default.repetition_penalty,
            logit_bias=asked.logit_bias,
            num_logprobs=asked.num_logprobs,
            grammar=grammar,
        )

    def _started(self, params: SamplingParams, prompt_ids: tuple[int, ...]) -> Started:
        model = self.state.request.model
        revision = engine().state(model).revision
        return Started(model, revision, params.seed, self.state.turn_index, prompt_ids)

    def _engine_request(
        self, prompt_ids: tuple[int, ...], output_ids: tuple[int, ...], params: SamplingParams
    ) -> GenerateRequest:
        request = self.state.request
        return GenerateRequest(
            request_id=f"{request.run_id}.{self.state.turn_index}",
            model=request.model,
            prompt_ids=prompt_ids,
            params=params,
            output_ids=output_ids,
            user=request.user,
            weight=request.weight,
            cache_salt=request.user,
            priority=request.priority,
        )
