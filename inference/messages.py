"""The values that cross between the web process and an engine worker, and nothing else.

Requests go down as `GenerateRequest` or `EncodeRequest`; what happens to them comes back as
`Update`s, in a `StepFrame` for one engine step or for several. Every value is frozen, so that it may be
shared between tasks.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from inference.config import EngineConfig
from inference.encode_messages import Encoded, EncodeRequest
from inference.errors import EngineError, error_of
from inference.hearing_messages import Heard, HearRequest
from inference.pickling import pickled_by_fields
from inference.priority import Priority
from inference.vision.prompt_images import PromptImage, cache_ids

FinishReason = Literal["stop", "length", "abort", "content_filter"]
"""Our own engine filters nothing; other servers do."""


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to draw tokens. `seed` is always resolved by the caller, so that a replay draws the same.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1 and `min_p` 0 switch each filter off.
    `stop` strings end the text in front of them; `stop_token_ids` end it at the id; neither does
    before `min_tokens` are there, and no end of turn is drawn before.
    `presence_penalty` and `frequency_penalty` count the output, `repetition_penalty` (1: none) the
    prompt as well. `logit_bias` adds to the logits of single ids.
    `grammar` (of `inference.grammar`) says which tokens may come next; what it allows wins over
    `min_tokens` and `ignore_eos`. `num_logprobs` asks for the log probability of every drawn token
    and of so many likely ones, `num_prompt_logprobs` for those of the prompt's tokens; None asks for
    neither.
    """

    max_tokens: int
    seed: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    grammar: str = ""
    num_logprobs: int | None = None
    num_prompt_logprobs: int | None = None

    @property
    def has_filters(self) -> bool:
        """Whether some tokens are not drawn because others are likelier."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    @property
    def has_penalties(self) -> bool:
        """Whether what was written changes what is drawn next."""
        return (
            self.repetition_penalty != 1
            or self.presence_penalty != 0
            or self.frequency_penalty != 0
        )

    @property
    def ends_at_eos(self) -> bool:
        """Whether the model's end of turn ends the answer. It always does where a grammar allows it:
        there it is the grammar's own end, and no part of what follows it."""
        return not self.ignore_eos or bool(self.grammar)


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One answer to generate.

    `output_ids` are tokens of this answer that were emitted before (by a worker that died, or
    before a restart of the web process): generation goes on behind them and emits only what is new.
    So does the rating of the prompt, behind its first `num_prompt_rated` tokens.
    `user` is the fair-share key, opaque to the engine; of two who ask for all they can get, one of
    twice the `weight` gets twice as much. Cached beginnings are shared by requests of one
    `cache_salt` only: whose prompt is computed fast tells what others have asked.
    `adapter` is the name of one of the model's LoRA adapters, which the answer goes through.
    `is_replay`: a worker had accepted it, and that or the web process died, so that no other one is
    too full for it.
    `images` stand in the prompt in this order, for models that see.
    `patience_s`: its reader hears of new text only so often, so that tokens may wait for each other so
    long (see `gathering`); 0 is the worker's own pace.
    """

    request_id: str
    model: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    output_ids: tuple[int, ...] = ()
    num_prompt_rated: int = 1
    user: str = ""
    weight: float = 1.0
    cache_salt: str = ""
    priority: Priority = "interactive"
    adapter: str = ""
    is_replay: bool = False
    images: tuple[PromptImage, ...] = ()
    patience_s: float = 0.0

    @property
    def kv_salt(self) -> str:
        """For whom the keys and values of its tokens are right, and who may have them."""
        return kv_salt(self.adapter, self.cache_salt)

    @property
    def cache_ids(self) -> tuple[int, ...]:
        """The prompt as caches know it."""
        return cache_ids(self.prompt_ids, self.images) if self.images else self.prompt_ids

    @property
    def image_bytes(self) -> int:
        return sum(len(image.data) for image in self.images)


def kv_salt(adapter: str, cache_salt: str) -> str:
    """Adapters change keys and values, so those of two, and of the base, are never the same. With the
    length in front no name and salt read like another name and salt."""
    return f"{len(adapter)}:{adapter}{cache_salt}"


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Queued:
    """Waiting. `position` counts from 1; `wait_s` is an estimate, None while nothing is known."""

    position: int
    wait_s: float | None = None


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Prefill:
    """Reading the prompt: `num_done` of `num_total` tokens, `num_cached` of them from the cache.

    `elapsed_ms` is how long this reading has taken so far, beginning when the request left the queue.
    """

    num_done: int
    num_total: int
    num_cached: int = 0
    elapsed_ms: float = 0.0


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The natural logarithm of a token's probability, and the likeliest tokens in its place.

    Of the model as it is: before bias, penalties, temperature and filters. `top` descends.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Tokens:
    """New tokens. `text` may be empty while a character or a stop string is still open.

    `logprobs` has one entry for each of `ids` where they were asked for, else none.
    """

    text: str
    ids: tuple[int, ...]
    num_output: int
    tokens_per_s: float = 0.0
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """How likely the prompt's tokens from `start` on were. The first token of all has none."""

    start: int
    logprobs: tuple[TokenLogprob, ...]


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Timings:
    """Durations of one request, in milliseconds; ttft counts from its arrival at the worker.

    `stop_ms` is from an abort to the worker's word that it computes nothing more for the request.
    `engine_ms` is what the request has had of the worker: of the time of each step its share, by the
    tokens that were computed for it (guessed ones included). Shares of all requests add up to the time
    of all steps. Of a worker that died nothing is known.
    """

    queued_ms: float = 0.0
    prefill_ms: float = 0.0
    ttft_ms: float = 0.0
    decode_ms: float = 0.0
    stop_ms: float = 0.0
    engine_ms: float = 0.0


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one request. Cached tokens are a part of the prompt tokens."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Finished:
    """The last update of a request that ended well. `stop` names the stop string that matched."""

    reason: FinishReason
    usage: Usage
    timings: Timings
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The last update of a request that could not go on; `code` is an EngineError's.

    `param` names the parameter that is wrong, where one is.
    """

    code: str
    message: str
    retry_after_s: float | None = None
    param: str | None = None

    @classmethod
    def of(cls, error: EngineError) -> "Failed":
        """What `error` says; `as_error` is the way back."""
        return cls(error.code, str(error), error.retry_after_s, error.param)

    def as_error(self) -> EngineError:
        return error_of(self.code, self.message, self.retry_after_s, self.param)


@dataclass(frozen=True, slots=True)
class Loading:
    """The model is not ready yet; `phase` is a word for people, `fraction` runs from 0 to 1."""

    phase: str
    fraction: float


Update = Loading | Queued | Prefill | PromptLogprobs | Tokens | Finished | Failed
"""What a generation can hear; exactly one `Finished` or `Failed` comes last."""


@dataclass(frozen=True, slots=True)
class Cached:
    """The answer to a `Probe`: how many tokens of each beginning are in the KV cache."""

    num_tokens: tuple[int, ...]


Reply = Update | Encoded | Heard | Cached
"""What any request can hear; an encoding hears of `Loading`, and then `Encoded` or `Failed`, and
sound `Heard`."""


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """A LoRA adapter of a loaded model, or, with a `problem`, why it is not served."""

    name: str
    revision: str = ""
    rank: int = 0
    size_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a loaded model is. `revision` changes whenever its files do.

    `draft_model` guesses for it, if there is one; `draft_problem` says why one that was asked for does
    not. `weights_bytes` are with its draft model's and with its adapters'.
    """

    name: str
    revision: str
    architecture: str
    num_parameters: int
    weights_bytes: int
    max_context_tokens: int
    dtype: str
    device: str
    draft_model: str = ""
    draft_problem: str = ""
    adapters: tuple[AdapterInfo, ...] = ()


# --- down the pipe ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """The first value that a worker receives."""

    config: EngineConfig
    model: str
    path: Path


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Submit:
    request: GenerateRequest | EncodeRequest | HearRequest


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop a request at the next step.

    A generation answers by `Finished(reason="abort")`, an encoding not at all.
    """

    request_id: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Look what is cached of some prompts of one salt; changes nothing."""

    request_id: str
    prompts: tuple[tuple[int, ...], ...]
    kv_salt: str


@dataclass(frozen=True, slots=True)
class GiveWay:
    """Somebody waits for a first word: compute no chore for `for_s`. Not answered."""

    for_s: float


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the worker process; whatever still runs is dropped without an answer."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Move the weights to the host's memory and forget the cache; answered by `Asleep`."""


@dataclass(frozen=True, slots=True)
class Wake:
    """Move them back; answered by `Ready`."""


ToWorker = Submit | Abort | Probe | GiveWay | Sleep | Wake | Shutdown

# --- up the pipe -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The self-test passed, and a canary token was generated or a canary batch encoded."""

    info: ModelInfo
    load_s: float


@dataclass(frozen=True, slots=True)
class Asleep:
    """The device is free of the model, whose weights take `host_bytes` of the host's memory."""

    host_bytes: int


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The model cannot be served; the process ends after this."""

    code: str
    message: str


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class EngineStats:
    """A picture of the worker after a step.

    Of all tokens that were ever guessed ahead, `num_drafted`, so many were right: `num_accepted`.
    The step took `forward_ms` in the model alone, for `num_decoded_tokens` (guessed ones included) and
    `num_read_tokens` of prompts, which passed their last layer in it; `is_reading` where others passed
    some layers as well; or for `num_encoded_tokens` of inputs, the longest of `num_longest`.
    """

    num_running: int = 0
    num_waiting: int = 0
    kv_tokens_used: int = 0
    kv_tokens_cached: int = 0
    kv_tokens_total: int = 0
    step_ms: float = 0.0
    forward_ms: float = 0.0
    num_decoded_tokens: int = 0
    num_read_tokens: int = 0
    is_reading: bool = False
    num_encoded_tokens: int = 0
    num_longest: int = 0
    num_drafted: int = 0
    num_accepted: int = 0

    def plus(self, *others: "EngineStats") -> "EngineStats":
        """Of several workers together; their times, which run side by side, are the longest."""
        totals = {}
        for each in fields(self):
            values = [getattr(stats, each.name) for stats in (self, *others)]
            totals[each.name] = max(values) if each.name.endswith("_ms") else sum(values)
        return EngineStats(**totals)


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class StepFrame:
    """All updates of a step, or of several (see `gathering`): (request_id, update) in order, and the
    state after the last."""

    updates: tuple[tuple[str, Reply], ...]
    stats: EngineStats = field(default_factory=EngineStats)


FromWorker = Loading | Ready | Asleep | LoadFailed | StepFrame
