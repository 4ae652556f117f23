"""One pass through our own engine: a prompt is built, and tokens come back."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing

from chat.answer_state import AnswerState
from chat.asking import Control, TurnSoFar
from chat.engine import engine
from chat.events import Event, Failed, LogEvent, Phase, Started
from chat.off_loop import off_loop
from chat.turn import Turn
from inference import (
    DEFAULT_MAX_TOKENS,
    AnswerParser,
    ChatMessage,
    ChatTokenizer,
    ContextTooLong,
    GenerateRequest,
    Loading,
    Prefill,
    PromptLogprobs,
    Queued,
    SamplingParams,
    Timings,
    Tokens,
    Update,
    Usage,
    behind_thinking,
    fit_messages,
    opens_thinking,
    prompt_room,
)
from inference import Failed as EngineFailed
from inference import Finished as EngineFinished


class EngineTurn(Turn):
    """A turn of our own engine. `so_far` is where an interrupted one goes on, to the token."""

    def __init__(
        self,
        state: AnswerState,
        control: Control,
        earlier: list[LogEvent],
        tokenizer: ChatTokenizer,
        so_far: TurnSoFar | None,
    ) -> None:
        super().__init__(state, control, earlier)
        self.tokenizer = tokenizer
        self.so_far = so_far

    async def events(self) -> AsyncGenerator[Event, None]:
        prompt_ids = self.so_far.prompt_ids if self.so_far else await self._build_prompt()
        tail = self.tokenizer.tail_of(prompt_ids)
        is_thinking = opens_thinking(self.tokenizer.chat_template, tail)
        params = self._sampling_params(is_thinking)
        parser = self._parser(tail, is_thinking)
        output_ids: tuple[int, ...] = ()
        if self.so_far is not None:
            output_ids = self.so_far.output_ids
            parser.feed(self.tokenizer.replay(output_ids, params.stop, params.min_tokens))
        else:
            yield self.log(self._started(params, prompt_ids))
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
                return [*self.show(parser.feed(text), ids, logprobs), decode]
            case EngineFinished():
                self.end = update
                return [*self.show(parser.finish())]
            case EngineFailed(code, message, retry_after_s, param):
                return [Failed(code, message, retry_after_s, param)]

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
        self.state.messages, ids = await off_loop(
            fit_messages,
            self.state.messages,
            self._encode,
            prompt_room(limit, request.sampling.max_tokens),
            max_context_tokens=limit,
        )
        return ids

    def _encode(self, messages: list[ChatMessage]) -> tuple[int, ...]:
        return self.tokenizer.encode_chat(messages, tools=self.tool_schemas())

    def _parser(self, prompt_tail: str, is_thinking: bool) -> AnswerParser:
        """By the marks of the chat template, or by none where a grammar leaves nothing but text: a
        string in JSON may well speak of <think>."""
        tools = self.tool_schemas()
        is_text = self.state.request.sampling.grammar and not tools and not is_thinking
        return AnswerParser("" if is_text else self.tokenizer.chat_template, prompt_tail, tools)

    def _sampling_params(self, is_thinking: bool) -> SamplingParams:
        asked = self.state.request.sampling
        grammar = asked.grammar
        if grammar and is_thinking:
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
