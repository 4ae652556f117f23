"""One encoder as the web process uses it: texts in, vectors, labels or scores out. No torch here.

A large set of texts goes to the worker in pieces, so that no frame is large, a worker that dies takes
little with it, and the queue is never filled by one caller.
"""

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import exp

from inference.encode_messages import Caller, Encoded, EncodeRequest, EncoderInput
from inference.encoder_layout import EncoderLayout
from inference.encoder_tokenizer import EncoderTokenizer, Text
from inference.errors import InvalidParameter, Overloaded

Send = Callable[[EncodeRequest], Awaitable[Encoded]]

_TEXTS_AT_ONCE = 256  # to tokenize, between looks at whether the caller is still there
_SHORT_CHARS = 1_000
_REQUEST_TOKENS = 16_384
_REQUESTS_AT_ONCE = 2  # so that the worker has something to do while results travel
_MAX_PAUSE_S = 5.0
# Of their own: asyncio's few threads serve everybody's queries, and a large set takes seconds.
_POOL = ThreadPoolExecutor(2, thread_name_prefix="tokenize")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One float32 vector per text, in the order of the texts; `num_tokens` is what was read, and
    `known_shares` the part of each text's tokens that the model knows."""

    vectors: "tuple[array[float], ...]"
    num_tokens: int
    known_shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelScore:
    """`score` is a probability; over the labels of a text they sum to 1 unless several may hold."""

    label: str
    score: float


@dataclass(frozen=True, slots=True)
class Classifications:
    """For each text all labels, the likeliest first."""

    labels: tuple[tuple[LabelScore, ...], ...]
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well a document answers a query: the model's logit, and the same squashed to 0 … 1."""

    logit: float
    score: float


@dataclass(frozen=True, slots=True)
class Reranking:
    """One relevance per document, in the order of the documents."""

    documents: tuple[Relevance, ...]
    num_tokens: int


@dataclass(frozen=True, slots=True)
class _Results:
    rows: "list[array[float]]"
    num_tokens: int


class Encoder:
    """An embedding model, a classifier or a reranker by its files, and the way to its worker."""

    def __init__(self, layout: EncoderLayout, tokenizer: EncoderTokenizer, send: Send) -> None:
        self.layout = layout
        self._tokenizer = tokenizer
        self._send = send

    async def embed(
        self,
        texts: Sequence[str | Sequence[int]],
        *,
        prompt_name: str | None,
        truncate: bool,
        dimensions: int | None,
        caller: Caller,
    ) -> Embeddings:
        prompt = self._prompt(prompt_name)
        self._check_dimensions(dimensions)
        if dimensions == self.layout.dimensions:
            dimensions = None  # nothing is cut, so nothing is scaled either
        inputs = await self._tokenized(texts, prompt=prompt, truncate=truncate)
        results = await self._run(inputs, dimensions, caller)
        known = tuple(map(self._tokenizer.known_share, inputs))
        return Embeddings(tuple(results.rows), results.num_tokens, known)

    async def classify(
        self, texts: Sequence[str | tuple[str, str]], *, truncate: bool, caller: Caller
    ) -> Classifications:
        inputs = await self._tokenized(texts, truncate=truncate)
        results = await self._run(inputs, None, caller)
        return Classifications(tuple(map(self._ranked, results.rows)), results.num_tokens)

    async def rerank(
        self, query: str, documents: Sequence[str], *, truncate: bool, caller: Caller
    ) -> Reranking:
        pairs = [(query, document) for document in documents]
        results = await self._run(await self._tokenized(pairs, truncate=truncate), None, caller)
        relevances = (Relevance(logit, _sigmoid(logit)) for (logit,) in results.rows)
        return Reranking(tuple(relevances), results.num_tokens)

    def _prompt(self, name: str | None) -> str:
        prompts = self.layout.prompts
        name = self.layout.default_prompt if name is None else name
        if name is None:
            return ""
        if name not in prompts:
            known = ", ".join(prompts) or "none"
            raise InvalidParameter(
                "prompt_name", f"the model has no prompt '{name}'; it has {known}"
            )
        return prompts[name]

    def _check_dimensions(self, dimensions: int | None) -> None:
        layout = self.layout
        if dimensions is None or dimensions == layout.dimensions:
            return
        if layout.shorter is None and 0 < dimensions < layout.dimensions:
            return
        if layout.shorter and dimensions in layout.shorter:
            return
        can = ", ".join(map(str, sorted({layout.dimensions, *(layout.shorter or ())})))
        can = f"1 to {layout.dimensions}" if layout.shorter is None else can
        raise InvalidParameter("dimensions", f"{dimensions} is not what the model can make: {can}")

    def _ranked(self, scores: "array[float]") -> tuple[LabelScore, ...]:
        pairs = zip(self.layout.labels, scores, strict=True)
        return tuple(LabelScore(*pair) for pair in sorted(pairs, key=lambda pair: -pair[1]))

    # --- texts to rows ------------------------------------------------------------------------

    async def _tokenized(
        self, texts: Sequence[Text], *, prompt: str = "", truncate: bool
    ) -> list[EncoderInput]:
        """In a thread, and in pieces: who was cancelled stops here. A few short texts take less than the
        way to a thread and back."""
        if sum(map(_num_chars, texts)) <= _SHORT_CHARS:
            return self._tokenizer.encode(texts, first_index=0, prompt=prompt, truncate=truncate)
        inputs: list[EncoderInput] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            piece = texts[start : start + _TEXTS_AT_ONCE]
            encode = partial(
                self._tokenizer.encode, piece, first_index=start, prompt=prompt, truncate=truncate
            )
            inputs += await asyncio.get_running_loop().run_in_executor(_POOL, encode)
        return inputs

    async def _run(
        self, inputs: list[EncoderInput], dimensions: int | None, caller: Caller
    ) -> _Results:
        """All rows in the order of the inputs. The first error ends it, and all that is on its way.

        The first piece decides whether there is room. What is begun is not thrown away: where the
        rest finds the queue full, it waits.
        """
        rows: dict[int, array[float]] = {}
        places = asyncio.Semaphore(_REQUESTS_AT_ONCE)

        async def run(piece: list[int], send: Send) -> None:
            async with places:
                of_piece = tuple(inputs[i] for i in piece)
                request = EncodeRequest(f"encode-{next(_numbers)}", of_piece, dimensions, caller)
                encoded = await send(request)
            rows.update(zip(piece, encoded.rows(), strict=True))

        pieces = list(_pieces(inputs))
        for first in pieces[:1]:
            await run(first, self._send)
        tasks = [asyncio.create_task(run(piece, self._send_patiently)) for piece in pieces[1:]]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return _Results([rows[i] for i in range(len(inputs))], sum(map(len, inputs)))

    async def _send_patiently(self, request: EncodeRequest) -> Encoded:
        while True:
            try:
                return await self._send(request)
            except Overloaded as full:
                await asyncio.sleep(min(_MAX_PAUSE_S, full.retry_after_s or _MAX_PAUSE_S))


def _num_chars(text: Text) -> int:
    """Of token ids each counts as one."""
    if isinstance(text, str):
        return len(text)
    return sum(len(part) if isinstance(part, str) else 1 for part in text)


def _pieces(inputs: list[EncoderInput]) -> Iterator[list[int]]:
    """Indices of inputs, the longest first: pieces of so many tokens, alike in length."""
    piece: list[int] = []
    num_tokens = 0
    for index in sorted(range(len(inputs)), key=lambda i: len(inputs[i]), reverse=True):
        if piece and num_tokens + len(inputs[index]) > _REQUEST_TOKENS:
            yield piece
            piece, num_tokens = [], 0
        piece.append(index)
        num_tokens += len(inputs[index])
    if piece:
        yield piece


def _sigmoid(logit: float) -> float:
    """Without an overflow on either side."""
    return 1 / (1 + exp(-logit)) if logit >= 0 else exp(logit) / (1 + exp(logit))
