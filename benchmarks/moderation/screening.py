"""What judging costs: a question before its answer, and an answer while it is written."""

import random
import time
from collections.abc import AsyncIterator, Sequence
from statistics import median
from typing import Any

import psutil

from benchmarks.table import Row
from inference import BUILTIN, Caller, Engine, EngineConfig, GenerateRequest, SamplingParams, Tokens
from moderation.classifiers.making import made
from moderation.classifiers.screener import Screener
from moderation.classifiers.spec import BuiltIn

LENGTHS = (10, 25, 50, 100, 200, 1000)
_CALLER = Caller("somebody", 1.0, "interactive")
_TOKENS = 256
_TEXT = (
    "Yesterday we walked along the river and talked about the garden, the old bridge and what the"
    " children had learnt at school. My sister asked how bread is made without any yeast. Could you"
    " explain which flour is best for it, how long the dough has to rest, and why the oven should be"
    " hot before it goes in? Write it so that a beginner understands each of the steps."
)
_WORDS = _TEXT.split()


async def of_questions(config: EngineConfig, num_texts: int) -> list[Row]:
    """Milliseconds until the verdict, and of the computing of all processes, for each length."""
    engine = Engine(config)
    screener = made([BuiltIn()], engine)
    try:
        await screener.screen(["warm up"], _CALLER)
        return [await _row(screener, words, num_texts) for words in LENGTHS]
    finally:
        await engine.close()


async def _row(screener: Screener, num_words: int, num_texts: int) -> Row:
    walls_ms, computed_ms = [], []
    for n in range(num_texts):
        text = _text(n, num_words)
        before_s, began_s = _cpu_s(), time.perf_counter()
        await screener.screen([text], _CALLER)
        walls_ms.append((time.perf_counter() - began_s) * 1e3)
        computed_ms.append((_cpu_s() - before_s) * 1e3)
    walls_ms.sort()
    return {
        "words": num_words,
        "p50 ms": median(walls_ms),
        "p95 ms": walls_ms[int(0.95 * len(walls_ms))],
        "computed ms": sum(computed_ms) / len(computed_ms),
    }


def _text(seed: int, num_words: int) -> str:
    """Of which no window is known from before: repeated ones are judged once."""
    words = random.Random(seed).choices(_WORDS, k=num_words - 1)
    return f"{seed} {' '.join(words)}"


def _cpu_s() -> float:
    """Of this process and its workers."""
    this = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in [this, *this.children(recursive=True)])


async def of_answers(config: EngineConfig, num_pairs: int) -> list[Row]:
    """Milliseconds a token, with each sentence judged before it is shown and without, in turns."""
    engine = Engine(config)
    screener = made([BuiltIn()], engine)
    try:
        await screener.screen(["warm up"], _CALLER)
        await _write(engine, None, 0)
        plain, judged = [], []
        for n in range(num_pairs):
            plain.append(await _write(engine, None, n))
            judged.append(await _write(engine, screener, n))
        ratios = sorted(b / a for a, b in zip(plain, judged, strict=True))
        return [
            {
                "answers": num_pairs,
                "ms a token": median(plain),
                "judged ms a token": median(judged),
                "ratio p50": median(ratios),
                "ratio max": ratios[-1],
            }
        ]
    finally:
        await engine.close()


async def _write(engine: Engine, screener: Screener | None, seed: int) -> float:
    from chat.events import Delta
    from chat.holding_back import HoldBack

    hold, num_chars = HoldBack(), 0
    began_s = time.perf_counter()
    first_s = began_s
    async for update in _tokens(engine, seed):
        if not num_chars:
            first_s = time.perf_counter()
        num_chars += max(1, len(update.text))
        if screener is None:
            continue
        for piece in hold.hear(Delta(update.text, num_chars, ids=update.ids)):
            await screener.screen([piece.context + piece.text], _CALLER)
    return (time.perf_counter() - first_s) * 1e3 / _TOKENS


async def _tokens(engine: Engine, seed: int) -> AsyncIterator[Tokens]:
    tokenizer = await engine.tokenizer(BUILTIN)
    asked: Sequence[Any] = [{"role": "user", "content": "Write a short story about a river."}]
    request = GenerateRequest(
        f"bench-{seed}-{time.monotonic_ns()}",
        BUILTIN,
        tokenizer.encode_chat(asked),
        SamplingParams(max_tokens=_TOKENS, seed=seed, ignore_eos=True),
    )
    async for update in engine.generate(request):
        if isinstance(update, Tokens):
            yield update
