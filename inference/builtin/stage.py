"""Stages of a training and the stream of batches that each one asks for.

Dialogs come at about 100,000 tokens a second from one process: enough for a CPU that trains, far too
few for a GPU. So a stream may come from several processes, each with its own seed, in turns.
"""

import itertools
import multiprocessing
import random
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.queues import Queue

from inference.builtin.mixture import Style, training_dialogs
from inference.builtin.packing import Batch, batches, copying_batch
from inference.builtin.tokenizer import load as load_tokenizer
from inference.builtin.tokenizer import name_pieces


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training with one mixture and a straight line of learning rates."""

    name: str
    num_tokens: int
    max_length: int
    step_tokens: int
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

    pool_size: int = 4096
    """Dialogs that are sorted by length at once."""

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of a batch: few, so that a step mixes dialogs of several lengths."""
        return max(2048, self.step_tokens // 4)


def batches_of(stage: Stage, skip: int = 0, num_processes: int = 1) -> Generator[Batch, None, None]:
    """The batches of a stage without end; the first `skip` of them are made and dropped.

    The same arguments give the same batches. Close the iterator to end its processes. Raises
    queue.Empty when one of them makes nothing for five minutes.
    """
    if num_processes == 1:
        yield from itertools.islice(_made(stage), skip, None)
    context = multiprocessing.get_context("spawn")
    queues: list[Queue[Batch]] = [context.Queue(maxsize=32) for _ in range(num_processes)]
    with ExitStack() as stack:
        for number, queue in enumerate(queues):
            share = replace(stage, seed=stage.seed * 1000 + number)
            process = context.Process(target=_fill, args=(queue, share), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
        for number in itertools.count():
            batch = queues[number % num_processes].get(timeout=300)
            if number >= skip:
                yield batch


def _fill(queue: "Queue[Batch]", stage: Stage) -> None:
    for batch in _made(stage):
        queue.put(batch)


def _made(stage: Stage) -> Iterator[Batch]:
    rng = random.Random(stage.seed)
    tokenizer = load_tokenizer()
    style = Style(stage.is_short, name_pieces(tokenizer) if stage.has_pieces else ())
    dialogs = training_dialogs(stage.seed, stage.weights, style=style)
    stream = batches(
        tokenizer,
        dialogs,
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
