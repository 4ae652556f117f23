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

_TOLD_BY = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A dialog as ids; `counts[i]`: how often token i counts in the loss, 0 where nobody learns it."""

    ids: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to be padded to `length`."""

    rows: tuple[Row, ...]
    length: int

    @property
    def num_tokens(self) -> int:
        return sum(len(row.ids) for row in self.rows)


def rows_of(
    tokenizer: Tokenizer,
    dialogs: Sequence[Dialog],
    *,
    with_repeats: bool = False,
    choice_count: int = 1,
) -> list[Row]:
    """Encode dialogs up to their last target; targets are the answers with their end marks.

    `with_repeats`: so is every token that stood behind the same token before, whoever says it. A name
    that a passage repeats teaches copying as well as an answer does, and there are many more of them.
    A space announces nothing: behind one, the token before it must be the same as well.

    `choice_count`: how often a choice counts, see `_count_choices`.
    """
    space = tokenizer.token_to_id("Ġ")
    assert space is not None
    parts = [segments(dialog) for dialog in dialogs]
    texts = [segment.text for found in parts for segment in found]
    encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    rows = []
    for found in parts:
        ids: list[int] = []
        counts: list[int] = []
        for segment in found:
            new = next(encoded).ids
            ids += new
            counts += [int(segment.is_target)] * len(new)
        if any(counts):
            last = max(i for i, count in enumerate(counts) if count) + 1
            ids, counts = ids[:last], counts[:last]
            if choice_count > 1:
                _count_choices(ids, counts, choice_count)
            if with_repeats:
                _mark_repeats(ids, counts, space)
            rows.append(Row(tuple(ids), tuple(counts)))
    return rows


def _count_choices(ids: list[int], counts: list[int], choice_count: int) -> None:
    """Let those tokens of an answer count more that no copying tells: its first one, and each whose
    four tokens before it (two words) stood before with another one behind.

    In an answer from passages they are one token in eight, and they alone say which sentence it is,
    and whether there is one.
    """
    followers: dict[tuple[int, ...], set[int]] = {}
    for i in range(_TOLD_BY, len(ids)):
        seen = followers.setdefault(tuple(ids[i - _TOLD_BY : i]), set())
        if counts[i] and (not counts[i - 1] or seen - {ids[i]}):
            counts[i] = choice_count
        seen.add(ids[i])


def _mark_repeats(ids: list[int], counts: list[int], space: int) -> None:
    seen: set[tuple[int, ...]] = set()
    for i in range(1, len(ids)):
        start = max(0, i - 2) if ids[i - 1] == space else i - 1
        repeat = tuple(ids[start : i + 1])
        if repeat in seen:
            counts[i] = max(counts[i], 1)
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
    choice_count: int = 1,
) -> Iterator[Batch]:
    """Batches of about `batch_tokens` padded tokens, in random order; longer dialogs are left out."""
    rng = random.Random(seed)
    stream = iter(dialogs)
    while pool := list(islice(stream, pool_size)):
        rows = rows_of(tokenizer, pool, with_repeats=with_repeats, choice_count=choice_count)
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
    counts = [0] * len(ids)
    source = len(ids)
    while len(ids) < length:
        start = rng.randrange(source - 2)
        span = ids[start : min(source, start + rng.randint(2, 24))][: length - len(ids)]
        ids += span
        counts += [0] + [1] * (len(span) - 1)
    return Row(tuple(ids), tuple(counts))
