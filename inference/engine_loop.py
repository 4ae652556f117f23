"""The heart of a worker: requests in, one frame of updates per step out."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose
from time import monotonic

from tokenizers import Tokenizer

from inference import draws
from inference.checks import check_request
from inference.detokenizer import Detokenizer
from inference.encode_messages import EncodeRequest
from inference.errors import (
    ModelError,
    Overloaded,
    RequestError,
)
from inference.grammar import GrammarGaveUp, Grammars, GrammarState
from inference.hearing_messages import HearRequest
from inference.kv import KVCache
from inference.messages import (
    Cached,
    EngineStats,
    Failed,
    Finished,
    FinishReason,
    GenerateRequest,
    Probe,
    Reply,
    SamplingParams,
    StepFrame,
    TokenLogprob,
    Tokens,
    Update,
)
from inference.model_runner import ModelRunner, StepResult
from inference.out_of_memory import give_back, is_fault, is_out_of_memory
from inference.scheduler import Scheduler
from inference.sequence import Sequence
from inference.step_work import Computed, StepWork

logger = logging.getLogger(__name__)
_LOOK_WAIT_S = 0.02  # for an image, where there is nothing else to do; requests wait so long
_TELL_LOOKING_S = 2.0
_SAME_LOGPROB = 0.01  # the same kernels compute it, over an empty cache each time


@dataclass(slots=True)
class _Answer:
    """What belongs to a sequence beside its tokens: its text, and the grammar that it follows."""

    detokenizer: Detokenizer
    grammar: GrammarState | None


class EngineLoop:
    """Owns the scheduler, the runner and every sequence's text. Single-threaded; does no I/O."""

    def __init__(
        self,
        runner: ModelRunner,
        kv: KVCache,
        scheduler: Scheduler,
        tokenizer: Tokenizer,
        grammars: Grammars,
        *,
        eos_ids: frozenset[int],
        vocab_size: int,
    ) -> None:
        self.runner = runner
        self.kv = kv
        self.scheduler = scheduler
        self.tokenizer = tokenizer
        self.grammars = grammars
        self.eos_ids = eos_ids
        self.vocab_size = vocab_size
        self._answers: dict[str, _Answer] = {}
        self._updates: list[tuple[str, Reply]] = []
        self._canary: TokenLogprob | None = None
        self._forward_ms = 0.0  # of the last step; 0 where it failed
        self._told_looking_s = 0.0
        self._charged_s = 0.0  # up to when the time of steps has been shared out

    # --- requests -----------------------------------------------------------------------------

    def submit(self, request: GenerateRequest | EncodeRequest | HearRequest) -> None:
        """Queue a request, or answer at once why not."""
        try:
            if isinstance(request, EncodeRequest | HearRequest):
                raise RequestError("This model writes answers; it embeds and ranks nothing.")
            check_request(
                request,
                max_context_tokens=self.kv.max_context_tokens,
                vocab_size=self.vocab_size,
                sees=self.runner.eyes is not None,
            )
            if request.adapter:
                self.runner.adapters.require(request.adapter)
            answer = self._begin(request)
        except (RequestError, ModelError) as error:
            self._emit(request.request_id, Failed.of(error))
            return
        except Exception as error:
            logger.exception("request %s cannot begin", request.request_id)
            message = f"The engine could not begin this request: {error}"
            self._emit(request.request_id, Failed("generation_failed", message))
            return
        # The host numbers its requests; two of one id would take each other's room in the cache.
        assert request.request_id not in self._answers
        sequence = Sequence(request)
        if reason := self._end_of(sequence, answer):
            self._emit_end(sequence, answer, reason)  # resumed behind its last token
        elif self.scheduler.add(sequence):
            self._answers[sequence.id] = answer
        else:
            self._emit(
                sequence.id, Failed.of(Overloaded.expecting(self.scheduler.waiting.wait_s()))
            )

    def _begin(self, request: GenerateRequest) -> _Answer:
        """The answer up to the tokens that were emitted before. Raises InvalidParameter."""
        params = request.params
        grammar = None
        if params.grammar:
            grammar = self.grammars.start(params.grammar, request.output_ids)
        detokenizer = Detokenizer(
            self.tokenizer, params.stop, min_tokens=params.min_tokens, behind=request.prompt_ids
        )
        detokenizer.feed(request.output_ids)
        return _Answer(detokenizer, grammar)

    def abort(self, request_id: str) -> None:
        """End a request now; unknown ids are fine: it may just have finished."""
        sequence = self.scheduler.find(request_id)
        if sequence is not None:
            self._end(sequence, "abort")

    def probe(self, probe: Probe) -> None:
        """Tell what is cached of some prompts."""
        cached = [self.kv.count_cached(ids, probe.kv_salt) for ids in probe.prompts]
        self._updates.append((probe.request_id, Cached(tuple(cached))))

    # --- checks -------------------------------------------------------------------------------

    def canary(self) -> None:
        """Ready means that a token was generated, not that a process runs. Only while idle.

        The first one is remembered, for in one process, on one device, each later one is as likely:
        what has become of the weights meanwhile shows in it. Raises ModelError.
        """
        params = SamplingParams(max_tokens=1, ignore_eos=True, num_logprobs=0)
        self.submit(GenerateRequest("canary", "", (1, 2, 3), params))
        drawn: list[TokenLogprob] = []
        while not self.is_idle:
            for frame in self.step():
                for _, update in frame.updates:
                    if isinstance(update, Failed):
                        raise ModelError(f"The canary token failed: {update.message}")
                    if isinstance(update, Tokens):
                        drawn += update.logprobs
        self._compare_canary(drawn[0])

    def _compare_canary(self, drawn: TokenLogprob) -> None:
        first = self._canary = self._canary or drawn
        is_near = isclose(first.logprob, drawn.logprob, abs_tol=_SAME_LOGPROB)
        if first.token_id != drawn.token_id or not is_near:
            raise ModelError(
                f"The canary token is another one than at first: {drawn.token_id}, of log probability"
                f" {drawn.logprob:.3f}, in place of {first.token_id}, of {first.logprob:.3f}."
            )

    def check(self) -> None:
        """Prove that an idle engine's books are right. Raises AssertionError."""
        self.kv.check()
        self.scheduler.speculation.check()

    def sleep(self) -> int:
        """Leave the device; returns how many bytes lie on the host. Only while idle."""
        self.check()
        num_bytes = self.runner.sleep()
        give_back()
        return num_bytes

    def wake(self) -> None:
        """Be where it was before, and prove it. Raises ModelError, torch.OutOfMemoryError."""
        self.runner.wake()
        self.canary()

    # --- the step -----------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return self.scheduler.is_idle and not self._updates

    def announce(self) -> StepFrame | None:
        """What is known before a step runs, so that nobody waits a whole step for a sign of life."""
        self._updates += self.scheduler.changed_positions()
        return self._frame(0.0, Computed()) if self._updates else None

    def step(self) -> Iterable[StepFrame]:
        """Run one step; a frame before it for what was just admitted, and one after it."""
        self._hear_of_looks()
        plan = self.scheduler.plan()
        for sequence, num_tokens in plan:
            is_new = sequence.num_computed == sequence.num_cached and not sequence.is_decoding
            is_on_its_way = sequence.chunk is not None and sequence.chunk.begin > 0
            if is_new and not is_on_its_way and num_tokens < sequence.num_pending:
                self._emit(sequence.id, sequence.progress(monotonic()))
        if frame := self.announce():
            yield frame
        started_s = monotonic()
        computed = self._compute(plan)
        step_ms = (monotonic() - started_s) * 1e3
        if frame := self._frame(step_ms, computed):
            yield frame

    def _compute(self, plan: list[tuple[Sequence, int]]) -> Computed:
        return self._guess_and_run(plan) if plan else Computed()

    def _guess_and_run(self, plan: list[tuple[Sequence, int]]) -> Computed:
        if any(sequence.request.images for sequence, _ in plan):
            plan = self._look(plan)
            if not plan:
                return Computed()
        started_s = self._charged_s = monotonic()
        self._forward_ms = 0.0
        plan = self.scheduler.guess(plan, self._grammar_of)
        guessed_s = monotonic()
        num_wrong = self.scheduler.num_wrong
        work = StepWork.of(plan)
        self._run(plan)
        num_wrong = self.scheduler.num_wrong - num_wrong
        num_tokens = work.num_read + work.num_decoded - num_wrong
        took_s = monotonic() - guessed_s
        guessing_s = guessed_s - started_s
        if work.is_usual:  # what is read again costs more than a prompt, and tells nothing of one
            self.scheduler.estimates.learn_step(
                num_tokens, took_s, work.num_read, guessing_s, num_wrong, work.num_layered
            )
        if not work.num_read:
            self.scheduler.speculation.pace.learn_step(took_s, work.num_drafted)
        return work.computed()

    def _look(self, plan: list[tuple[Sequence, int]]) -> list[tuple[Sequence, int]]:
        """The plan with so much of each prompt as it has seen the images of; without those who have seen
        none of it yet, or fail by them."""
        able = []
        for sequence, num_tokens in plan:
            charged_tokens, charged_s = sequence.worth_tokens(num_tokens), sequence.engine_s
            num_readable = self._num_readable(sequence, num_tokens)
            if num_readable is None:
                continue
            looked_s = sequence.engine_s - charged_s
            if num_readable < num_tokens:
                if sequence.chunk is not None:
                    # Few of its tokens pass all layers, in place of many that pass some.
                    num_readable = min(num_readable, max(1, int(sequence.chunk.worth_tokens)))
                    sequence.chunk = None
                self.scheduler.charge(sequence, num_readable - charged_tokens)
            self.scheduler.charge(sequence, self.scheduler.estimates.tokens_in(looked_s))
            sequence.is_looking = num_readable == 0
            if num_readable:
                able.append((sequence, num_readable))
        self._attend()
        return able

    def _num_readable(self, sequence: Sequence, num_tokens: int) -> int | None:
        """How many of its planned tokens may be computed now; None where it has failed."""
        if not sequence.request.images or self.runner.eyes is None:
            return num_tokens
        try:
            return self.runner.eyes.num_readable(sequence, num_tokens)
        except RequestError as error:
            self._fail(sequence, Failed.of(error))
        except Exception as error:
            if is_fault(error):
                raise
            logger.exception("the images of request %s cannot be seen", sequence.id)
            self._fail(sequence, draws.lost(f"The engine could not look at an image: {error}"))
        return None

    def _hear_of_looks(self) -> None:
        """Who looks goes on once what it needs next has been seen. Where all look, that is waited for,
        and their readers are told now and then that they are still being worked for."""
        eyes = self.runner.eyes
        if eyes is None:
            return
        looking = [s for s in self.scheduler.running.values() if s.is_looking]
        is_alone = bool(looking) and len(looking) == len(self.scheduler.running)
        eyes.take_news(_LOOK_WAIT_S if is_alone else 0.0)
        if not looking:
            return
        for sequence in looking:
            sequence.is_looking = not eyes.has_news_of(sequence)
        if any(sequence.is_looking for sequence in looking):
            self._tell_looking(looking)
        self._attend()

    def _tell_looking(self, looking: list[Sequence]) -> None:
        if monotonic() - self._told_looking_s > _TELL_LOOKING_S:
            self._told_looking_s = monotonic()
            for sequence in looking:
                self._emit(sequence.id, sequence.progress(monotonic()))

    def _attend(self) -> None:
        """Have that looked at which running prompts read next, whoever's turn it is first."""
        if self.runner.eyes is not None:
            self.runner.eyes.attend(self.scheduler.images_by_turn())

    def _grammar_of(self, request_id: str) -> GrammarState | None:
        return self._answers[request_id].grammar

    def _run(self, plan: list[tuple[Sequence, int]]) -> None:
        was_prefilling = [s for s, _ in plan if not s.is_decoding]
        worth = [(s, s.worth_tokens(num)) for s, num in plan]
        started_s = monotonic()
        result, is_short = None, False
        try:
            result = self.runner.run(plan)
            if not result.due:
                # Nobody looks at its logits. A long prompt's steps would be launched far ahead of a GPU:
                # who comes meanwhile would wait behind them, and none would tell what reading takes.
                self.runner.wait()
        except Exception as error:
            if is_fault(error):
                raise  # the next process goes on with all answers
            is_short = is_out_of_memory(error)
            if not is_short:
                logger.exception("a step of %d sequences failed", len(plan))
        if result is None:
            # Nobody has advanced. Behind the handler: its traceback holds the failed step's tensors.
            if not (is_short and self._relieve(plan)):
                self._run_one_by_one(plan)
            return
        self.scheduler.relief.note_calm()
        self._forward_ms = (monotonic() - started_s) * 1e3
        for sequence in was_prefilling:
            computed = sequence.cache_ids(sequence.num_computed)
            if not sequence.chunk:
                self.kv.share(sequence.id, computed, sequence.request.kv_salt)
            self._emit(sequence.id, sequence.progress(monotonic()))
        self._advance(result, worth)

    def _relieve(self, plan: list[tuple[Sequence, int]]) -> bool:
        """Make room after a step that found no memory. False: there is nothing more to be done."""
        num_tokens = sum(num for _, num in plan)
        can_shrink = self.scheduler.shrink(plan)
        logger.warning("no memory for a step of %d sequences, %d tokens", len(plan), num_tokens)
        self.kv.give_back()
        give_back()
        return can_shrink

    def _run_one_by_one(self, plan: list[tuple[Sequence, int]]) -> None:
        """Find the culprit of a failed step: it fails alone, and its neighbours go on.

        A failed step has advanced nobody, and writing the same keys twice does no harm.
        """
        for sequence, num_tokens in plan:
            try:
                result = self.runner.run([(sequence, num_tokens)])
            except Exception as error:
                if is_fault(error):
                    raise
                logger.exception("request %s fails by itself", sequence.id)
                self._fail(sequence, draws.lost(f"The engine could not run this request: {error}"))
            else:
                self._advance(result, [(sequence, num_tokens)])

    def _advance(self, result: StepResult, worth: list[tuple[Sequence, float]]) -> None:
        """Rate prompts, draw a token for every sequence that is due, and act on it. `worth` is how many
        tokens were computed for each sequence of the step."""
        problems: draws.Problems = {}
        for sequence, rated in draws.rate_prompts(result, problems):
            self._emit(sequence.id, rated)
        drawn = draws.draw_all(result, self.eos_ids, self._grammar_of, problems)
        self._charge(worth)
        for sequence, own in drawn:
            if problem := problems.get(sequence.id):
                self._fail(sequence, problem)
                continue
            self._take_safely(sequence, own)
        for sequence, _ in result.prompts:  # of those that were not due yet
            if sequence.id in problems and sequence.id in self._answers:
                self._fail(sequence, problems[sequence.id])

    def _charge(self, worth: list[tuple[Sequence, float]]) -> None:
        """Share the time since the last charge out among those it was spent on, token by token."""
        now_s = monotonic()
        per_token_s = (now_s - self._charged_s) / max(1, sum(num for _, num in worth))
        self._charged_s = now_s
        for sequence, num_tokens in worth:
            sequence.engine_s += per_token_s * num_tokens

    def _take_safely(self, sequence: Sequence, drawn: list[draws.Drawn]) -> None:
        """Where that fails, the sequence does, and its neighbours go on."""
        try:
            self._take_all(sequence, drawn)
        except GrammarGaveUp as error:
            self._fail(sequence, draws.of_caller(error))
        except Exception as error:
            if is_fault(error):
                raise
            logger.exception("request %s fails by itself", sequence.id)
            self._fail(sequence, draws.lost(f"The engine could not take a token: {error}"))

    def _take_all(self, sequence: Sequence, drawn: list[draws.Drawn]) -> None:
        """The token that was due, and of those behind it as many as the draft was right about."""
        num_accepted = 0
        for guess, (token_id, _, is_broken) in zip(sequence.draft, drawn, strict=False):
            if token_id != guess or is_broken:
                break
            num_accepted += 1
        self.scheduler.accept(sequence, num_accepted)
        for number, (token_id, rated, is_broken) in enumerate(drawn[: num_accepted + 1]):
            if is_broken:
                text = "The model produced no numbers (NaN) for this prompt."
                self._fail(sequence, draws.lost(text))
                return
            if number:
                sequence.num_computed += 1  # the token before was of the draft
            self._take(sequence, token_id, rated)
            if sequence.id not in self._answers:
                return

    def _take(self, sequence: Sequence, token_id: int, logprobs: tuple[TokenLogprob, ...]) -> None:
        """A sequence has drawn a token: text goes out, and it may be the last one."""
        params = sequence.request.params
        is_eos = token_id in self.eos_ids and params.ends_at_eos
        if is_eos or token_id in params.stop_token_ids:
            if sequence.first_token_s is None:
                sequence.first_token_s = monotonic()
            self._end(sequence, "stop")
            return
        sequence.append(token_id, monotonic())
        answer = self._answers[sequence.id]
        if answer.grammar is not None:
            answer.grammar.take(token_id)
        text = answer.detokenizer.feed([token_id])
        self._emit(
            sequence.id,
            Tokens(text, (token_id,), sequence.num_output, sequence.tokens_per_s(), logprobs),
        )
        if reason := self._end_of(sequence, answer):
            self._end(sequence, reason)

    def _end_of(self, sequence: Sequence, answer: _Answer) -> FinishReason | None:
        """Why an answer ends behind its last token, if it does."""
        if answer.detokenizer.matched_stop is not None:
            return "stop"
        if answer.grammar is not None and answer.grammar.is_complete:
            return "stop"
        return "length" if self.scheduler.is_full(sequence) else None

    # --- ends ---------------------------------------------------------------------------------

    def _end(self, sequence: Sequence, reason: FinishReason) -> None:
        self.scheduler.remove(sequence)
        self._look_no_more(sequence)
        self._emit_end(sequence, self._answers.pop(sequence.id), reason)

    def _emit_end(self, sequence: Sequence, answer: _Answer, reason: FinishReason) -> None:
        if text := answer.detokenizer.finish():
            self._emit(sequence.id, Tokens(text, (), sequence.num_output))
        timings = sequence.timings(monotonic())
        stop = answer.detokenizer.matched_stop
        if stop is not None and reason == "length":
            reason = "stop"  # it stood in what was held back for an unfinished character
        self._emit(sequence.id, Finished(reason, sequence.usage(), timings, stop))

    def _fail(self, sequence: Sequence, failed: Failed) -> None:
        self.scheduler.remove(sequence, is_reusable=False)
        self._look_no_more(sequence)
        del self._answers[sequence.id]
        self._emit(sequence.id, failed)

    def _look_no_more(self, sequence: Sequence) -> None:
        """At what only one that has ended has wanted."""
        if sequence.request.images:
            self._attend()

    # --- frames -------------------------------------------------------------------------------

    def _emit(self, request_id: str, update: Update) -> None:
        self._updates.append((request_id, update))

    def _frame(self, step_ms: float, computed: Computed) -> StepFrame | None:
        if not self._updates:
            return None
        updates, self._updates = tuple(self._updates), []
        return StepFrame(
            updates,
            EngineStats(
                num_running=len(self.scheduler.running),
                num_waiting=len(self.scheduler.waiting),
                kv_tokens_used=self.kv.used_tokens,
                kv_tokens_cached=self.kv.cached_tokens,
                kv_tokens_total=self.kv.capacity_tokens,
                step_ms=step_ms,
                forward_ms=self._forward_ms,
                num_decoded_tokens=computed.num_decoded,
                num_read_tokens=computed.num_read,
                is_reading=computed.is_reading,
                num_drafted=self.scheduler.num_drafted,
                num_accepted=self.scheduler.num_accepted,
            ),
        )
