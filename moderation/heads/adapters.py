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

import numpy as np
from numpy.typing import NDArray

from moderation.heads.fit import weights_of_texts
from moderation.heads.folds import NUM_FOLDS
from moderation.heads.vectors import CACHE_DIR
from moderation.heads.weights import Floats
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.windows import Part, words_in


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


def _tune(
    rows: NDArray[np.int64], parts: Sequence[Part], labels: Floats, counts: Floats, out: Path
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
    command = [sys.executable, "-m", "inference.tuning", str(examples), str(out)]
    subprocess.run(command, check=True)  # noqa: S603 - our own
    made_from.write_text(digest)
