"""Texts as classifiers read them: undisguised, in parts that fit, the worst of which counts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from inference import ContextTooLong
from moderation.categories import Scores, worst
from moderation.normalising import judged
from moderation.windows import readings

# Of its own: asyncio's few threads serve everybody's queries, and long texts take tens of milliseconds.
_POOL = ThreadPoolExecutor(2, thread_name_prefix="moderation")

SHORT_CHARS = 500

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.get_running_loop().run_in_executor(_POOL, partial(work, *args, **kwargs))


async def for_texts(
    texts: Sequence[str], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """`work` on these texts: in a thread, but for short ones, as most questions are. They take less than
    the way to a thread and back, above all where many are asked at once and threads wait for each other.
    """
    if are_short(texts):
        return work(*args, **kwargs)
    return await in_thread(work, *args, **kwargs)


def are_short(texts: Sequence[str], most_chars: int = SHORT_CHARS) -> bool:
    """Characters beyond ASCII count as the bytes that they are: of one may become 18 others (NFKC)."""
    return sum(map(_num_chars, texts)) <= most_chars


def _num_chars(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


async def by_parts(
    texts: Sequence[str],
    num_words: int,
    score: Callable[[list[str]], Awaitable[Sequence[Scores]]],
    nothing: Scores,
) -> list[Scores]:
    """Scores of the texts by their readings of `num_words` at most, each of which is scored once.

    Where `score` raises ContextTooLong, as for words of many tokens, they are cut finer. `nothing` are
    the scores of a text without anything to read.
    """
    parts = await in_thread(_parts, texts, num_words)
    flat = list(dict.fromkeys(part for own in parts for part in own))
    try:
        scored = dict(zip(flat, await score(flat), strict=True)) if flat else {}
    except ContextTooLong:
        if num_words < 2:
            raise
        return await by_parts(texts, num_words // 2, score, nothing)
    return [worst([nothing, *(scored[part] for part in own)]) for own in parts]


def _parts(texts: Sequence[str], num_words: int) -> list[list[str]]:
    read = [readings(judged(text), num_words) for text in texts]
    return [[part for part in parts if part.strip()] for parts in read]
