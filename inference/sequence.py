"""One sequence in the engine: its tokens, and how far they are computed."""

from collections import Counter
from dataclasses import dataclass, field
from time import monotonic

from inference.layered_chunk import LayeredChunk
from inference.messages import GenerateRequest, Prefill, Timings, Usage
from inference.vision.grid_positions import GridPositions

UNKNOWN = -1  # a token that is being drawn


@dataclass(slots=True, eq=False)
class Sequence:
    """The state of one request between steps. Knows integers and times, no tensors.

    `token_ids` is the prompt followed by the output. The first `num_computed` of them have their
    keys and values in the KV cache; the rest is computed by the next steps. When nothing is left
    but the last token, the sequence decodes; before that it prefills. A sequence that comes back
    (preempted, or resumed after a crash) simply has more to prefill.

    `draft` is what the next step computes beyond the last token, on the chance that it is drawn; `chunk`
    is what of a prompt is on its way through the layers.
    While steps that were launched have not been read, their tokens stand at the end, as `num_promised`
    times UNKNOWN, and their inputs count as computed. Whoever gives away or keeps what is computed takes
    them back first.
    `prompt_cache_ids` are the prompt's as caches know them, where images are not alike.
    `grid` says where tokens are for rotary embedding, if that is not their numbers.
    While it `is_looking`, an image has to be seen before more of its prompt can be read.
    `engine_s` is its share of the steps so far, `reading_since_s` when its prompt began to be read.
    """

    request: GenerateRequest
    arrived_s: float = field(default_factory=monotonic)
    token_ids: list[int] = field(init=False)
    num_computed: int = 0
    num_to_prefill: int = field(init=False)
    num_cached: int = 0
    admitted_s: float | None = None
    reading_since_s: float = 0.0
    engine_s: float = 0.0
    first_token_s: float | None = None
    last_token_s: float | None = None
    draft: list[int] = field(default_factory=list)
    chunk: LayeredChunk | None = None
    num_chunks: int = 0  # that it has begun so
    num_prompt_rated: int = field(init=False)
    num_promised: int = 0
    is_looking: bool = False
    prompt_cache_ids: tuple[int, ...] = field(init=False)
    grid: GridPositions | None = field(init=False)
    _output_counts: Counter[int] | None = None
    _prompt_vocabulary: list[int] | None = None

    def __post_init__(self) -> None:
        self.token_ids = [*self.request.prompt_ids, *self.request.output_ids]
        self.num_to_prefill = len(self.token_ids)
        self.num_prompt_rated = self.request.num_prompt_rated
        self.prompt_cache_ids = self.request.cache_ids
        self.grid = GridPositions.of(self.request.images)

    @property
    def id(self) -> str:
        return self.request.request_id

    @property
    def num_prompt(self) -> int:
        return len(self.request.prompt_ids)

    @property
    def num_output(self) -> int:
        return len(self.token_ids) - self.num_prompt

    @property
    def num_pending(self) -> int:
        """Tokens whose keys and values are not computed yet."""
        return len(self.token_ids) - self.num_computed

    def num_at_once(self, most_of_answer: int) -> int:
        """How many of them one step may compute. The answer's have to wait until the prompt's are done,
        for they are computed in another way (Span.each_alone), which takes longer for each."""
        num_of_prompt = self.num_prompt - self.num_computed
        return num_of_prompt if num_of_prompt > 0 else min(self.num_pending, most_of_answer)

    def worth_tokens(self, num_tokens: int) -> float:
        """What the planned tokens cost: those that pass some of the layers are worth fewer."""
        return self.chunk.worth_tokens if self.chunk else num_tokens

    @property
    def is_read_again(self) -> bool:
        """Whether tokens of its answer are to be computed anew next, behind a crash or a preemption."""
        return not self.is_decoding and self.num_computed >= self.num_prompt

    @property
    def is_reading(self) -> bool:
        """Whether a step may read more of its prompt."""
        return not (self.is_decoding or self.is_looking)

    @property
    def is_decoding(self) -> bool:
        return self.num_pending == 1 and self.num_computed >= self.num_to_prefill

    def forget_computed(self) -> None:
        """The KV cache of this sequence was given away: everything has to be prefilled again."""
        self.num_computed = 0
        self.num_to_prefill = len(self.token_ids)
        self.draft = []
        self.chunk = None
        self.is_looking = False

    def promise(self) -> None:
        """A step that computes its last token, and draws one, was launched."""
        self.token_ids.append(UNKNOWN)
        self.num_computed += 1
        self.num_promised += 1

    def take_back(self) -> int:
        """As if no step were under way; returns how many are."""
        num_promised, self.num_promised = self.num_promised, 0
        if num_promised:
            del self.token_ids[-num_promised:]
            self.num_computed -= num_promised
        return num_promised

    def append(self, token_id: int, now_s: float) -> None:
        if self.first_token_s is None:
            self.first_token_s = now_s
        self.last_token_s = now_s
        self.token_ids.append(token_id)
        if self._output_counts is not None:
            self._output_counts[token_id] += 1

    def cache_ids(self, num_tokens: int | None = None) -> list[int]:
        """The first so many tokens, or all, as caches know them."""
        ids = self.token_ids[:num_tokens]
        if self.request.images:
            ids[: self.num_prompt] = self.prompt_cache_ids[:num_tokens]
        return ids

    @property
    def unrated_beginning(self) -> list[int]:
        """The tokens up to the first that is to be rated still, as caches know them: what comes before
        that one needs no logits. All tokens where none is."""
        is_rated = self.request.params.num_prompt_logprobs is not None
        return self.cache_ids(self.num_prompt_rated if is_rated else None)

    def unrated_between(self, start: int, end: int) -> range:
        """Computed positions whose next token belongs to the prompt and is to be rated still."""
        if self.request.params.num_prompt_logprobs is None:
            return range(0)
        return range(max(start, self.num_prompt_rated - 1), min(end, self.num_prompt - 1))

    # Penalties ask for these at every step; what asks for no penalty never pays for them.

    @property
    def output_counts(self) -> Counter[int]:
        """How often each token is in the output, earlier workers' part included."""
        if self._output_counts is None:
            self._output_counts = Counter(self.token_ids[self.num_prompt :])
        return self._output_counts

    @property
    def prompt_vocabulary(self) -> list[int]:
        """The ids that the prompt uses, each once."""
        if self._prompt_vocabulary is None:
            self._prompt_vocabulary = sorted(set(self.request.prompt_ids))
        return self._prompt_vocabulary

    def tokens_per_s(self) -> float:
        """Decode speed since the first token of this worker; 0 before the second."""
        if self.first_token_s is None or self.last_token_s is None:
            return 0.0
        elapsed_s = self.last_token_s - self.first_token_s
        num_decoded = self.num_output - len(self.request.output_ids) - 1
        return num_decoded / elapsed_s if elapsed_s > 0 else 0.0

    def usage(self) -> Usage:
        return Usage(self.num_prompt, min(self.num_cached, self.num_prompt), self.num_output)

    def timings(self, now_s: float) -> Timings:
        """Durations up to `now_s`; what has not begun counts 0."""
        admitted_s = self.admitted_s if self.admitted_s is not None else now_s
        first_s = self.first_token_s if self.first_token_s is not None else now_s
        return Timings(
            queued_ms=(admitted_s - self.arrived_s) * 1e3,
            prefill_ms=max(0.0, first_s - admitted_s) * 1e3,
            ttft_ms=(first_s - self.arrived_s) * 1e3,
            decode_ms=max(0.0, now_s - first_s) * 1e3,
            engine_ms=self.engine_s * 1e3,
        )

    def progress(self, now_s: float) -> Prefill:
        """How far the prompt is read. What has passed some layers counts for what that is worth."""
        num_done = min(self.num_computed, self.num_to_prefill)
        if self.chunk:
            num_done += int(self.chunk.passed_tokens)
        elapsed_ms = (now_s - self.reading_since_s) * 1e3
        return Prefill(num_done, self.num_to_prefill, self.num_cached, elapsed_ms)
