"""Dialogs to batches: one dialog a row, rows of like length together, loss on the answers only.

Rows are never shared, so no dialog sees another and causal attention needs no mask. Sorting a pool
by length keeps the padding under a tenth. Torch-free: rows are lists of ids.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tokenizers import Tokenizer

from inference.builtin.dialog import Dialog
from inference.builtin.template import segments

LENGTHS = (64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 768, 1024, 1408, 2048)
"""Padded row lengths: few, so that a compiled network meets few shapes."""


@dataclass(frozen=True, slots=True)
class Row:
    """A dialog as ids; `is_target[i]` says that token i is written by the assistant."""

    ids: tuple[int, ...]
    is_target: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to be padded to `length`."""

    rows: tuple[Row, ...]
    length: int

    @property
    def num_tokens(self) -> int:
        return sum(len(row.ids) for row in self.rows)


def rows_of(
    tokenizer: Tokenizer, dialogs: Sequence[Dialog], *, with_repeats: bool = False
) -> list[Row]:
    """Encode dialogs up to their last target; targets are the answers with their end marks.

    `with_repeats`: so is every token that stood behind the same token before, whoever says it. A name
    that a passage repeats teaches copying as well as an answer does, and there are many more of them.
    A space announces nothing: behind one, the token before it must be the same as well.
    """
    space = tokenizer.token_to_id("Ġ")
    assert space is not None
    parts = [segments(dialog) for dialog in dialogs]
    texts = [segment.text for found in parts for segment in found]
    encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    rows = []
    for found in parts:
        ids: list[int] = []
        is_target: list[bool] = []
        for segment in found:
            new = next(encoded).ids
            ids += new
            is_target += [segment.is_target] * len(new)
        if any(is_target):
            last = max(i for i, target in enumerate(is_target) if target) + 1
            if with_repeats:
                _mark_repeats(ids[:last], is_target, space)
            rows.append(Row(tuple(ids[:last]), tuple(is_target[:last])))
    return rows


def _mark_repeats(ids: list[int], is_target: list[bool], space: int) -> None:
    seen: set[tuple[int, ...]] = set()
    for i in range(1, len(ids)):
        start = max(0, i - 2) if ids[i - 1] == space else i - 1
        repeat = tuple(ids[start : i + 1])
        if repeat in seen:
            is_target[i] = True
        seen.add(repeat)


def padded_length(length: int) -> int:
    """The smallest of `LENGTHS` that holds a row."""
    return next(limit for limit in LENGTHS if length <= limit)


def batches(
    tokenizer: Tokenizer,
    dialogs: Iterable[Dialog],
    *,
    batch_tokens: int,
    max_length: int,
    seed: int,
    pool_size: int = 4096,
    with_repeats: bool = False,
) -> Iterator[Batch]:
    """Batches of about `batch_tokens` padded tokens, in random order; longer dialogs are left out."""
    rng = random.Random(seed)
    stream = iter(dialogs)
    while pool := list(islice(stream, pool_size)):
        rows = rows_of(tokenizer, pool, with_repeats=with_repeats)
        rows = [row for row in rows if len(row.ids) <= max_length]
        rows.sort(key=lambda row: len(row.ids))
        made: list[Batch] = []
        while rows:
            length = padded_length(len(rows[-1].ids))
            count = max(1, batch_tokens // length)
            made.append(Batch(tuple(rows[-count:]), length))
            del rows[-count:]
        rng.shuffle(made)
        yield from made


def copying_batch(rng: random.Random, vocab_size: int, *, batch_tokens: int, length: int) -> Batch:
    """Rows of random tokens whose second part repeats spans of the first; targets are the repeats.

    The plainest matter for induction: nothing but copying helps, and every token is copied. The
    first token of a repeated span is no target, since nothing announces it.
    """
    return Batch(
        tuple(_copying_row(rng, vocab_size, length) for _ in range(max(1, batch_tokens // length))),
        length,
    )


def _copying_row(rng: random.Random, vocab_size: int, length: int) -> Row:
    ids = [rng.randrange(vocab_size) for _ in range(rng.randint(length // 8, length // 2))]
    is_target = [False] * len(ids)
    source = len(ids)
    while len(ids) < length:
        start = rng.randrange(source - 2)
        span = ids[start : min(source, start + rng.randint(2, 24))][: length - len(ids)]
        ids += span
        is_target += [False] + [True] * (len(span) - 1)
    return Row(tuple(ids), tuple(is_target))
