"""One pass through our own engine: a prompt is built, and tokens come back."""

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from chat.answer_state import AnswerState
from chat.asking import Control, TurnSoFar
from chat.engine import engine
from chat.events import Delta, Event, Failed, LogEvent, Phase, Resumed, Started
from chat.off_loop import off_loop, off_loop_if_long
from chat.prompt_plan import fit
from chat.sampling_params import sampling_params
from chat.turn import Turn
from chat.untagged import untagged, untagged_value
from inference import (
    THINK_CLOSE,
    AnswerParser,
    ChatMessage,
    ChatTokenizer,
    ContextTooLong,
    GenerateRequest,
    Loading,
    Prefill,
    PromptImage,
    PromptLogprobs,
    Queued,
    SamplingParams,
    Segment,
    Timings,
    TokenLogprob,
    Tokens,
    Update,
    Usage,
    behind_thinking,
    images_of,
    in_form,
    opens_thinking,
    with_data,
    without_data,
)
from inference import Failed as EngineFailed
from inference import Finished as EngineFinished

Said = tuple[Sequence[Segment], tuple[int, ...], tuple[TokenLogprob, ...]]
"""What an update says: as segments, as ids, and how likely these were."""


_OTHER_IMAGES = "Vitrine was interrupted, and the pictures that this answer is about have changed."


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
        self._num_output = self._num_before = len(so_far.output_ids) if so_far else 0
        self._waiting: list[Said] = []

    async def events(self) -> AsyncGenerator[Event, None]:
        begun = self._begun()
        prompt_ids = self.so_far.prompt_ids if self.so_far else await self._build_prompt(begun)
        tail = self.tokenizer.tail_of(prompt_ids)
        is_thinking = opens_thinking(self.tokenizer.chat_template, tail)
        images = await self._images_in(prompt_ids)
        if images is None:
            yield Failed("interrupted", _OTHER_IMAGES)
            return
        params = self._sampling_params(is_thinking)
        parser = self._parser(tail, is_thinking, goes_on=bool(begun))
        output_ids: tuple[int, ...] = ()
        if self.so_far is not None:
            output_ids = self.so_far.output_ids
            said = self.tokenizer.replay(prompt_ids, output_ids, params.stop, params.min_tokens)
            parser.feed(said)
        else:
            yield self.log(self._started(params, prompt_ids, images))
            if left_out := self.newly_left_out():
                yield left_out
        if self.control.is_stopped:
            usage = Usage(len(prompt_ids), 0, len(output_ids))
            self.end = EngineFinished("abort", usage, Timings())
            return
        request = replace(self._engine_request(prompt_ids, output_ids, params), images=images)
        self.state.watch.note(tokens=len(prompt_ids))
        self.state.watch.begin("queued", turn=self.state.turn_index)
        with self.control.while_generating(request.model, request.request_id):
            async with aclosing(engine().generate(request)) as updates:
                async for update in updates:
                    self._take_time(update)
                    for event in self._hear(update, parser):
                        yield event

    def _take_time(self, update: Update) -> None:
        """What the engine does becomes spans, one after the other."""
        watch, turn = self.state.watch, self.state.turn_index
        match update:
            case Loading():
                watch.begin("loading", turn=turn)
            case Queued(position):
                watch.begin("queued", turn=turn)
                watch.note(position=position)
            case Prefill(num_total=total, num_cached=cached, elapsed_ms=elapsed_ms):
                watch.begin("prefill", ago_ms=elapsed_ms, turn=turn, tokens=total, cached=cached)
            case Tokens(num_output=num_output):
                if not watch.is_in("decode"):
                    watch.begin("decode", turn=turn, revision=self._revision())
                    self._num_before = self._num_output
                self._num_output = num_output
                watch.note(tokens=num_output - self._num_before)
            case EngineFinished(reason=reason, timings=timings):
                watch.note(reason=reason, engine_ms=round(timings.engine_ms, 3))
                watch.end()

    def _revision(self) -> str:
        """By now the model is loaded, whatever it was when the turn began."""
        return engine().revision(self.state.request.model)

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
                self._waiting.append((parser.feed(text), ids, logprobs))
                if parser.is_calling and self.state.screen.may_stop("output"):
                    return [decode]
                return [*self._show_waiting(), decode]
            case EngineFinished():
                self.end = update
                self._waiting.append((parser.finish(), (), ()))
                return [*self._show_waiting()]
            case EngineFailed(code, message, retry_after_s, param):
                return [Failed(code, message, retry_after_s, param)]

    def _show_waiting(self) -> list[LogEvent]:
        """What stands in one update with the beginning of a call waits for its end, where that may be
        stopped: ids and likelihoods of the update tell of the call."""
        waiting, self._waiting = self._waiting, []
        return [event for said in waiting for event in self.show(*said)]

    # --- what the engine is asked ---------------------------------------------------------------

    def _begun(self) -> str:
        """What the turn has said before: all of a cut answer, where another is to go on with it."""
        deltas = (event for event in self.logged if isinstance(event, Delta))
        return "".join(delta.text for delta in deltas if delta.part == "text")

    async def _build_prompt(self, begun: str) -> tuple[int, ...]:
        """Token ids of the turn's prompt, up to and with what the answer begins with.

        What does not fit is left out where there is a plan.
        """
        plan = self.state.plan
        limits = self.limits(engine().context_tokens(self.state.request.model))
        if plan is None:
            messages = self.state.messages
            ids = await off_loop_if_long(self._num_chars(), self._encode, messages, begun)
            limit = limits.context_tokens
            if len(ids) >= limit:
                raise ContextTooLong(num_prompt_tokens=len(ids), max_context_tokens=limit)
            return ids
        encode = partial(self._encode_with_said, begun=begun)
        try:
            fitting = off_loop_if_long(self._num_chars(), fit, plan, encode, limits)
            self.state.plan, ids = await fitting
        except ContextTooLong as error:
            num_tools = sum(bool(tool.server) for tool in self.state.request.tools)
            raise ContextTooLong(
                num_prompt_tokens=error.num_prompt_tokens,
                max_context_tokens=error.max_context_tokens,
                num_reserved=limits.reserve_tokens,
                num_tools=num_tools if self.tool_schemas else 0,
            ) from None
        return ids

    async def _images_in(self, prompt_ids: tuple[int, ...]) -> tuple[PromptImage, ...] | None:
        """The images that the prompt was made with; None where some of an interrupted turn are gone, or
        are others by now."""
        if self.so_far is not None and not self.so_far.images:
            return ()
        images = images_of(self.state.messages)
        if self.so_far is not None:
            return await off_loop(with_data, self.so_far.images, images)
        return await off_loop(self.tokenizer.place_images, prompt_ids, images) if images else ()

    def _num_chars(self) -> int:
        """Of what is to be rendered, about; our own tools are always the same few."""
        messages, request = self.state.messages, self.state.request
        servers = (tool.schema() for tool in request.tools if tool.server)
        schemas = (*request.tool_schemas, *servers)
        said = sum(len(one["content"]) for one in messages)
        calls = [one.get("tool_calls", ()) for one in messages]
        return said + sum(len(str(one)) for one in (*calls, *schemas))

    def _encode_with_said(self, messages: list[ChatMessage], begun: str) -> tuple[int, ...]:
        return self._encode([*messages, *self.state.said], begun)

    def _encode(self, messages: list[ChatMessage], begun: str = "") -> tuple[int, ...]:
        ids = self.tokenizer.encode_chat(untagged(messages), tools=self.tool_schemas)
        if not begun:
            return ids
        tail = self.tokenizer.tail_of(ids)
        if opens_thinking(self.tokenizer.chat_template, tail):  # it has thought: its answer follows
            ids += self.tokenizer.encode_marks(f"{THINK_CLOSE}\n\n")
        return (*ids, *self.tokenizer.encode(untagged_value(begun)))

    def _parser(self, prompt_tail: str, is_thinking: bool, *, goes_on: bool) -> AnswerParser:
        """By the marks of the chat template, or by none where a grammar leaves nothing but text: a
        string in JSON may well speak of <think>."""
        tools = self.tool_schemas
        template, answer_mark = self.tokenizer.chat_template, ""
        if self.state.request.sampling.grammar and not tools and not is_thinking:
            form = self.tokenizer.call_form
            answer_mark = form.answer_mark if form else ""
            template = template if answer_mark else ""
        return AnswerParser(template, prompt_tail, tools, goes_on=goes_on, answer_mark=answer_mark)

    def _sampling_params(self, is_thinking: bool) -> SamplingParams:
        asked = self.state.request.sampling
        grammar = asked.grammar
        if grammar and is_thinking:
            grammar = behind_thinking(grammar)
        elif grammar and not self.tool_schemas:
            grammar = in_form(self.tokenizer.call_form, grammar)
        if self.state.seed is None:
            self.state.seed = secrets.randbits(63)
        model = self.state.request.model
        return sampling_params(model, asked, seed=self.state.seed, grammar=grammar)

    def _started(
        self,
        params: SamplingParams,
        prompt_ids: tuple[int, ...],
        images: tuple[PromptImage, ...],
    ) -> Started:
        model = self.state.request.model
        revision = engine().revision(model)
        turn = self.state.turn_index
        places = without_data(images)
        return Started(model, revision, params.seed, turn, prompt_ids, params, places)

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
            is_replay=any(isinstance(event, Resumed) for event in request.events),
            patience_s=request.patience_s,
        )
