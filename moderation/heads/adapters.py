"""Adapters of the embedding model, tuned to the examples: the one that is shipped, and one for each fold
that has not seen it."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from moderation.heads import examples as written
from moderation.heads.fit import weights_of_texts
from moderation.heads.folds import NUM_FOLDS
from moderation.heads.heads import OUTPUTS
from moderation.heads.labels import NATURAL_IMPORTANCE, outputs_of
from moderation.heads.vectors import CACHE_DIR
from moderation.heads.weights import Floats
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.windows import Part, read, whole, words_in

WRITERS_UNSEEN = (
    "first stranger",
    "third stranger",
    "fourth stranger",
    "writer G",
    "writer H",
)
"""Who wrote attacks, and of whom the shipped adapter has seen nothing: by what they wrote is known where
attacks begin. Whoever tunes it further takes some of them from here, so that it learns from these."""
NUM_HARMLESS, NUM_OTHERS = 7000, 6000
_LEAST_ORDER_WORDS = 4


def tuned_adapters(
    parts: Sequence[Part], labels: Floats, judged: Floats, folds: NDArray[np.int64]
) -> list[Path]:
    """Of each fold the folder of the adapter that has not seen it. `HEADS_ADAPTER` learns from all."""
    counts = weights_of_texts(labels, judged) * len(labels)
    outs = [CACHE_DIR / f"without-{fold}" for fold in range(NUM_FOLDS)]
    rows = [np.flatnonzero(folds != fold) for fold in range(NUM_FOLDS)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(
            pool.map(
                lambda own, out: _tune(own, parts, labels, counts, out),
                [np.arange(len(parts)), *rows],
                [HEADS_ADAPTER.path, *outs],
            )
        )
    return outs


def go_on() -> None:
    """Tune the upper layers of `HEADS_ADAPTER` further, by whole texts of all writers but those in
    `WRITERS_UNSEEN` and by some of the other examples, so that it forgets none of what it knew."""
    parts, labels, judged, importance = texts_to_go_on_with()
    counts = weights_of_texts(labels, judged) * importance * len(labels)
    options = ["--start", str(HEADS_ADAPTER.path), "--first-layer", "3", "--epochs", "1"]
    _tune(np.arange(len(parts)), parts, labels, counts, HEADS_ADAPTER.path, options)


def texts_to_go_on_with() -> tuple[list[Part], Floats, Floats, Floats]:
    """Parts, labels, which are judged, and how much each counts: (texts, OUTPUTS). Attacks, and what is
    harmful or sounds so, stand there twice, which is another epoch for them."""
    random = Random(3)
    examples = written.training_examples()
    labels, judged, importance = outputs_of(examples)
    is_seen = np.array([not is_unseen(one.group) for one in examples])
    is_natural = np.array([written.is_natural(one.group) for one in examples]) & is_seen
    is_sounding = np.array([written.is_sounding(one.group) for one in examples])
    is_twice = is_natural & (labels.any(axis=1) | is_sounding)
    harmless = np.flatnonzero(is_natural & ~is_twice).tolist()
    others = np.flatnonzero(is_seen & ~is_natural).tolist()
    rows = 2 * np.flatnonzero(is_twice).tolist()
    rows += random.sample(harmless, min(NUM_HARMLESS, len(harmless)))
    rows += random.sample(others, min(NUM_OTHERS, len(others)))
    orders = _orders()
    of_orders = np.zeros((len(orders), len(OUTPUTS)))
    of_orders[:, OUTPUTS.index("planted")] = 1
    return (
        [*(whole(examples[row].text) for row in rows), *(Part(one, (one,)) for one in orders)],
        np.concatenate([labels[rows], of_orders]),
        np.concatenate([judged[rows], of_orders]),
        np.concatenate([importance[rows], NATURAL_IMPORTANCE * of_orders]),
    )


def _orders() -> list[str]:
    """The sentences that are planted in whole documents, twice."""
    return [
        piece
        for one in written.documents()
        if one.is_order
        and written.is_natural(one.group)
        and written.is_planted(one.group)
        and not is_unseen(one.group)
        for piece in read(one.text).pieces
        if one.is_added(piece) and words_in(piece) >= _LEAST_ORDER_WORDS
    ] * 2


def is_unseen(group: str) -> bool:
    """Whether it is of a writer of whom the shipped adapter has seen nothing."""
    return written.is_apart(group) and written.writer_of(group) in WRITERS_UNSEEN


def _tune(
    rows: NDArray[np.int64],
    parts: Sequence[Part],
    labels: Floats,
    counts: Floats,
    out: Path,
    options: Sequence[str] = (),
) -> None:
    """By a process of its own, as torch has it. One that learnt from the same is kept."""
    lines = [
        json.dumps(
            {
                "pieces": [[piece, words_in(piece)] for piece in parts[row].pieces],
                "labels": labels[row].tolist(),
                "counts": counts[row].tolist(),
            }
        )
        for row in rows
    ]
    text = "\n".join(lines)
    digest = hashlib.sha256(text.encode()).hexdigest()
    examples = CACHE_DIR / f"{out.name}.jsonl"
    made_from = CACHE_DIR / f"{out.name}.sha256"
    if made_from.exists() and made_from.read_text() == digest:
        return
    CACHE_DIR.mkdir(parents=True, exist_ok=True)
    examples.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "inference.tuning", str(examples), str(out), *options]
    subprocess.run(command, check=True)  # noqa: S603 - our own
    made_from.write_text(digest)
