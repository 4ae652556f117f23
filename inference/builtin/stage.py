"""Stages of a training and the stream of batches that each one asks for.

Dialogs come at about 100,000 tokens a second from one process: enough for a CPU that trains, far too
few for a GPU. So a stream may come from several processes, each with its own seed, in turns.
"""

import itertools
import multiprocessing
import os
import random
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.queues import Queue
from typing import TypeVar

from tokenizers import Tokenizer

from inference.builtin.dialog import Dialog
from inference.builtin.mixture import Style, training_dialogs
from inference.builtin.packing import Batch, Row, batches, copying_batch, rows_of
from inference.builtin.packs import Pack, packs
from inference.builtin.tokenizer import load as load_tokenizer
from inference.builtin.tokenizer import name_pieces

T = TypeVar("T")
_AT_ONCE = 256  # dialogs that are tokenized together


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training with one mixture and a straight line of learning rates."""

    name: str
    num_tokens: int
    max_length: int
    step_tokens: int
    """Tokens of a step: of those batches that gradients are taken from."""
    lr_from: float
    """Muon's learning rate at the start; AdamW's is a fixed share of it."""
    lr_to: float
    seed: int
    weights: dict[str, float] = field(default_factory=dict)
    """Weights of skills that differ from the mixture's own."""
    copying: float = 0.0
    """Share of the batches that are random tokens to copy."""
    is_short: bool = False
    """Short and dense dialogs; see `Style`."""
    has_pieces: bool = False
    """Names from pieces of the vocabulary; see `Style`."""
    with_repeats: bool = False
    """Repeats are targets as well; see `rows_of`."""
    choice_count: int = 1
    """How often what no copying tells counts in the loss; see `rows_of`."""

    keep_share: float = 1.0
    """Share of the batches that gradients are taken from, those with the most loss; see `hardest.py`."""

    pool_size: int = 4096
    """Dialogs that are sorted by length at once."""

    parts: tuple["Stage", ...] = ()
    """Mixtures that are read in turns, as packs; lengths, seeds and styles are theirs."""

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of a batch: few, so that a step mixes dialogs of several lengths."""
        return max(2048, self.step_tokens // 4)


def batches_of(stage: Stage, skip: int = 0, num_processes: int = 1) -> Generator[Batch, None, None]:
    """The batches of a stage without end; the first `skip` of them are made and dropped.

    The same arguments give the same batches. Close the iterator to end its processes. Raises
    queue.Empty when one of them makes nothing for five minutes.
    """
    yield from _in_turns(_batches, stage, skip, num_processes)


def packs_of(stage: Stage, skip: int = 0, num_processes: int = 1) -> Generator[Pack, None, None]:
    """The same as packs of `step_tokens`, of the stage's parts where it has some."""
    yield from _in_turns(_packs, stage, skip, num_processes)


def _in_turns(
    make: Callable[[Stage], Iterator[T]], stage: Stage, skip: int, num_processes: int
) -> Generator[T, None, None]:
    if num_processes == 1:
        yield from itertools.islice(make(stage), skip, None)
    context = multiprocessing.get_context("spawn")
    queues: list[Queue[T]] = [context.Queue(maxsize=32) for _ in range(num_processes)]
    with ExitStack() as stack:
        for number, queue in enumerate(queues):
            share = _with_seed(stage, number)
            process = context.Process(target=_fill, args=(queue, make, share), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
        for number in itertools.count():
            made = queues[number % num_processes].get(timeout=300)
            if number >= skip:
                yield made


def _fill(queue: "Queue[T]", make: Callable[[Stage], Iterator[T]], stage: Stage) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there is a process for each core already
    for made in make(stage):
        queue.put(made)


def _with_seed(stage: Stage, number: int) -> Stage:
    """The stage for one of several processes."""
    parts = tuple(_with_seed(part, number) for part in stage.parts)
    return replace(stage, seed=stage.seed * 1000 + number, parts=parts)


def _dialogs(stage: Stage, tokenizer: Tokenizer) -> Iterator[Dialog]:
    style = Style(stage.is_short, name_pieces(tokenizer) if stage.has_pieces else ())
    return training_dialogs(stage.seed, stage.weights, style=style)


def _packs(stage: Stage) -> Iterator[Pack]:
    tokenizer = load_tokenizer()
    streams = [
        packs(_rows(part, tokenizer, _dialogs(part, tokenizer)), stage.step_tokens)
        for part in stage.parts or (stage,)
    ]
    while True:
        yield from map(next, streams)


def _rows(stage: Stage, tokenizer: Tokenizer, dialogs: Iterator[Dialog]) -> Iterator[Row]:
    while True:
        for row in rows_of(
            tokenizer,
            list(itertools.islice(dialogs, _AT_ONCE)),
            with_repeats=stage.with_repeats,
            choice_count=stage.choice_count,
        ):
            if len(row.ids) <= stage.max_length:
                yield row


def _batches(stage: Stage) -> Iterator[Batch]:
    rng = random.Random(stage.seed)
    tokenizer = load_tokenizer()
    stream = batches(
        tokenizer,
        _dialogs(stage, tokenizer),
        batch_tokens=stage.batch_tokens,
        max_length=stage.max_length,
        seed=stage.seed,
        pool_size=stage.pool_size,
        with_repeats=stage.with_repeats,
        choice_count=stage.choice_count,
    )
    vocab_size = tokenizer.get_vocab_size(with_added_tokens=False)
    while True:
        if rng.random() < stage.copying:
            length = rng.choice([n for n in (128, 256, 512) if n <= stage.max_length])
            yield copying_batch(rng, vocab_size, batch_tokens=stage.batch_tokens, length=length)
        else:
            yield next(stream)
