"""From the examples to an adapter, weights and thresholds: `python -m moderation.heads train`; and, in
some minutes, to the weights for attacks alone: `python -m moderation.heads fit`."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inference.adapter_files import read_adapter
from moderation.categories import (
    HEAD_CATEGORIES,
    INJECTION_CATEGORIES,
    UNSAFE_CATEGORIES,
    Scores,
    parent,
)
from moderation.evaluation import threshold_for
from moderation.heads import examples as written
from moderation.heads.examples import Document, Example
from moderation.heads.features import n_grams
from moderation.heads.fit import Floats, Inputs, Weights, fit, platt, weights_of_texts
from moderation.heads.heads import (
    THRESHOLDS,
    WEIGHTS,
    Heads,
    part_input,
    piece_inputs,
    shipped_thresholds,
)
from moderation.heads.vectors import vectors_of
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.normalising import judged
from moderation.windows import Part, Read, read, whole, words_in

CACHE_DIR = Path("var/moderation")
NUM_FOLDS = 5
# With 5 % of the folds' harmless texts, 8 % of those in held_out/ that were never looked at were
# flagged: the examples are one writer's. So half of it, to keep to 5 % of what others write.
MAX_SAFE_FLAGGED = 0.025
MAX_SAFE_TAKEN_FOR_INJECTION = 0.02
# Of the examples that came after the last whole training, most sound like attacks or are code.
MAX_SAFE_TAKEN_FOR_INJECTION_BY_FIT = 0.025
MAX_SAFE_FLAGGED_BY_KIND = 0.001
# These documents are made to be mistaken, by questions of kinds that the head has not seen in its fold.
# Of others' mails, articles (in three languages) and coding prompts it flags less than a fifth of that.
MAX_SAFE_DOCUMENTS_FLAGGED = 0.05


@dataclass(frozen=True, slots=True)
class Trained:
    """`held_out[i]` are the probabilities of example i by heads that have not seen its group, and
    `held_out_documents[i]` that of the worst piece of `documents[i]`."""

    examples: Sequence[Example]
    held_out: Sequence[Scores]
    documents: Sequence[Document]
    held_out_documents: Sequence[float]
    thresholds: dict[str, float]


def train() -> Trained:
    """Write the adapter, the weights and the thresholds. The folds, each with an adapter of its own,
    calibrate; what is shipped has learnt from all."""
    examples = written.training_examples()
    parts = [whole(one.text) for one in examples]
    grams = n_grams([one.text for one in examples])
    labels, judged = labels_of(examples)
    folds = _folds(examples)
    adapters = _adapters(parts, labels, judged, folds)

    def inputs_by(adapter: Path) -> Inputs:
        return Inputs(_vectors_of_wholes(parts, adapter), grams)

    logits = _logits_of_folds(folds, adapters, inputs_by, labels, judged)
    scales = np.ones(len(HEAD_CATEGORIES))
    shifts = np.zeros(len(HEAD_CATEGORIES))
    for column in range(len(HEAD_CATEGORIES)):
        known = judged[:, column] > 0
        scales[column], shifts[column] = platt(logits[known, column], labels[known, column])
    weights = fit(inputs_by(HEADS_ADAPTER.path), labels, judged)
    probabilities = 1 / (1 + np.exp(-(logits * scales + shifts)))
    held_out = [dict(zip(HEAD_CATEGORIES, row.tolist(), strict=True)) for row in probabilities]
    safe = [scores for one, scores in zip(examples, held_out, strict=True) if not one.categories]
    thresholds = _thresholds(safe, UNSAFE_CATEGORIES, MAX_SAFE_FLAGGED)
    thresholds |= _thresholds(safe, INJECTION_CATEGORIES, MAX_SAFE_TAKEN_FOR_INJECTION)
    _write_thresholds(thresholds)
    documents = written.documents()
    of_pieces, piece_scale, piece_shift, held_out_documents = _pieces(
        documents, adapters, thresholds["prompt_injection"]
    )
    weights = weights.scaled(scales, shifts)
    _save(
        {
            "categories": np.array(HEAD_CATEGORIES),
            "of_vector": weights.of_vector,
            "of_words": weights.of_words.astype(np.float16),
            "bias": weights.bias,
            "scales": scales,
            "shifts": shifts,
            "piece_scale": np.array(piece_scale),
            "piece_shift": np.array(piece_shift),
            **_of_pieces(of_pieces),
        }
    )
    return Trained(examples, held_out, documents, held_out_documents, thresholds)


def fit_to_adapter() -> None:
    """Write the weights, of which those for attacks are fitted anew, to the committed adapter and to all
    of today's examples; of whole texts and of pieces.

    All else stays as the last whole training left it: to calibrate takes an adapter for each fold that
    has not seen it, and hours. But attacks are shifted to where their threshold flags
    `MAX_SAFE_TAKEN_FOR_INJECTION_BY_FIT` of the harmless examples, by heads that have not seen them."""
    with np.load(WEIGHTS, allow_pickle=False) as found:
        kept = dict(found)
    examples = written.training_examples()
    attacks = [HEAD_CATEGORIES.index(name) for name in INJECTION_CATEGORIES]
    labels, judged = (of_all[:, attacks] for of_all in labels_of(examples))
    vectors = _vectors_of_wholes([whole(one.text) for one in examples], HEADS_ADAPTER.path)
    inputs = Inputs(vectors, n_grams([one.text for one in examples]))
    adapters = [HEADS_ADAPTER.path] * NUM_FOLDS
    logits = _logits_of_folds(_folds(examples), adapters, lambda _: inputs, labels, judged)
    scales, shifts = kept["scales"][attacks], kept["shifts"][attacks]
    highest = (logits * scales + shifts).max(axis=1)
    harmless = np.array([not one.categories for one in examples])
    threshold = shipped_thresholds()["prompt_injection"]
    cut = threshold_for(highest[harmless], MAX_SAFE_TAKEN_FOR_INJECTION_BY_FIT)
    shifts += float(np.log(threshold / (1 - threshold))) - cut
    weights = fit(inputs, labels, judged).scaled(scales, shifts)
    kept["of_vector"][:, attacks] = weights.of_vector
    kept["of_words"][:, attacks] = weights.of_words
    kept["bias"][attacks] = weights.bias
    kept["shifts"][attacks] = shifts
    pieces = _PieceExamples(written.documents())
    of_pieces = fit(
        pieces.inputs_by(HEADS_ADAPTER.path), pieces.labels, np.ones_like(pieces.labels)
    ).scaled(kept["piece_scale"][None], kept["piece_shift"][None])
    _save(kept | _of_pieces(of_pieces))


def _adapters(
    parts: Sequence[Part], labels: Floats, judged: Floats, folds: NDArray[np.int64]
) -> list[Path]:
    """Adapters that have not seen a fold, one for each; and the one that is shipped, from all."""
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


class _PieceExamples:
    """The pieces that the head for them learns from: orders, and all of harmless documents."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._texts = [read(document.text) for document in documents]
        self._places: list[int] = []
        self._words: list[str] = []
        labels, owners, folds = [], [], []
        for owner, (document, text) in enumerate(zip(documents, self._texts, strict=True)):
            for place, piece in enumerate(text.pieces):
                is_order = document.is_order and document.is_added(piece)
                if is_order or not document.is_order:
                    self._words.append(piece)
                    self._places.append(place)
                    labels.append([float(is_order)])
                    owners.append(owner)
                    folds.append(_fold(document.group_of(piece)))
        self._grams = n_grams(self._words)
        self.labels: Floats = np.array(labels)
        self.owners: NDArray[np.int64] = np.array(owners)
        self.folds: NDArray[np.int64] = np.array(folds)

    def inputs_by(self, adapter: Path) -> Inputs:
        vectors = _vectors_of_pieces(self._texts, adapter)
        rows = [piece_inputs(text, vectors) for text in self._texts]
        places = zip(self.owners, self._places, strict=True)
        return Inputs(np.stack([rows[owner][place] for owner, place in places]), self._grams)


def _pieces(
    documents: Sequence[Document], adapters: Sequence[Path], threshold: float
) -> tuple[Weights, float, float, list[float]]:
    """The head for pieces of documents, the scale and the shift that are in it, and what heads that have
    not seen their groups say of them. Scaled by Platt, and moved to where the threshold of windows flags
    `MAX_SAFE_DOCUMENTS_FLAGGED` of the harmless ones."""
    pieces = _PieceExamples(documents)
    truth, of = pieces.labels, pieces.owners
    judged = np.ones_like(truth)
    logits = _logits_of_folds(pieces.folds, adapters, pieces.inputs_by, truth, judged)[:, 0]
    scale, _ = platt(logits, truth[:, 0])
    highest = np.array([logits[of == owner].max(initial=-40) for owner in range(len(documents))])
    harmless = np.array([not one.is_order for one in documents])
    cut = threshold_for(highest[harmless], MAX_SAFE_DOCUMENTS_FLAGGED)
    shift = float(np.log(threshold / (1 - threshold))) - scale * cut
    weights = fit(pieces.inputs_by(HEADS_ADAPTER.path), truth, judged)
    scaled = weights.scaled(np.array([scale]), np.array([shift]))
    return scaled, scale, shift, (1 / (1 + np.exp(-(highest * scale + shift)))).tolist()


def scores_of(texts: Sequence[str], heads: Heads) -> list[Scores]:
    """As a text is scored when it's served: by its windows and its pieces."""
    texts_read = [read(judged(text)) for text in texts]
    return heads.judge(texts_read, _vectors_of_pieces(texts_read, HEADS_ADAPTER.path))


def _vectors_of_wholes(parts: Sequence[Part], adapter: Path) -> NDArray[np.float32]:
    """(texts, dimensions), of longer ones as of a window: the mean of their pieces."""
    pieces = list(dict.fromkeys(piece for part in parts for piece in part.pieces))
    vectors = dict(zip(pieces, vectors_of(pieces, adapter, CACHE_DIR), strict=True))
    return np.stack([part_input(part, vectors) for part in parts])


def _vectors_of_pieces(texts: Sequence[Read], adapter: Path) -> dict[str, NDArray[np.float32]]:
    pieces = list(dict.fromkeys(piece for text in texts for piece in text if piece.strip()))
    return dict(zip(pieces, vectors_of(pieces, adapter, CACHE_DIR), strict=True))


def labels_of(examples: Sequence[Example]) -> tuple[Floats, Floats]:
    """Which categories hold, and which are judged: (examples, categories) of 0 and 1."""
    labels = [[name in one.categories for name in HEAD_CATEGORIES] for one in examples]
    judged = [[name not in one.unjudged for name in HEAD_CATEGORIES] for one in examples]
    return np.array(labels, float), np.array(judged, float)


def _logits_of_folds(
    folds: NDArray[np.int64],
    adapters: Sequence[Path],
    inputs_by: Callable[[Path], Inputs],
    labels: Floats,
    judged: Floats,
) -> Floats:
    """By heads, on vectors of an adapter, neither of which has seen the fold."""
    logits = np.zeros_like(labels)
    for fold in range(NUM_FOLDS):
        seen: NDArray[np.int64] = np.flatnonzero(folds != fold)
        unseen: NDArray[np.int64] = np.flatnonzero(folds == fold)
        inputs = inputs_by(adapters[fold])
        weights = fit(inputs.of(seen), labels[seen], judged[seen])
        logits[unseen] = weights.logits(inputs.of(unseen))
    return logits


def _folds(examples: Sequence[Example]) -> NDArray[np.int64]:
    return np.array([_fold(one.group) for one in examples])


def _fold(group: str) -> int:
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:4]) % NUM_FOLDS


def _thresholds(
    safe: Sequence[Scores], names: Sequence[str], max_flagged: float
) -> dict[str, float]:
    """The lowest ones with which all these categories together flag no more than that share: one and
    the same for all that stand for themselves. A kind of another category, such as hate/threatening,
    is rare and has a lower one, by which it flags hardly any safe text of its own."""
    columns = {name: np.array([scores[name] for scores in safe]) for name in names}
    kinds = {
        name: threshold_for(columns[name], MAX_SAFE_FLAGGED_BY_KIND)
        for name in names
        if parent(name)
    }
    by_kinds = np.zeros(len(safe), bool)
    for name, threshold in kinds.items():
        by_kinds |= columns[name] >= threshold
    highest = np.max([columns[name] for name in names if name not in kinds], axis=0)
    allowed = max_flagged - float(by_kinds.mean())
    common = threshold_for(highest[~by_kinds], allowed * len(safe) / int((~by_kinds).sum()))
    found = {name: kinds.get(name, common) for name in names}
    return {name: min(0.999, round(value + 0.0005, 3)) for name, value in found.items()}


def _of_pieces(weights: Weights) -> dict[str, NDArray[np.generic]]:
    return {
        "piece_of_vector": weights.of_vector,
        "piece_of_words": weights.of_words.astype(np.float16),
        "piece_bias": weights.bias,
    }


def _save(arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Calibrated: the scales and shifts are in the weights, and beside them for whoever fits some anew.
    Half precision is a tenth of a percent."""
    digest, revision = written.digest(), read_adapter(HEADS_ADAPTER.path).revision
    own = {"digest": np.array(digest), "adapter": np.array(revision)}
    np.savez_compressed(WEIGHTS, allow_pickle=False, **{**arrays, **own})


_HEAD = """\
# From which probability on a category counts as found. Written by `python -m moderation.heads train`;
# policies may choose others.
#
# Chosen on the project's own harmless examples, most of which sound harmful, each scored by heads that
# have not seen it or its neighbours. The categories of harmful content together flag at most
# {unsafe:.1%} of them, so that 5% of what others write is not passed; prompt_injection and jailbreak
# together at most {injection:.0%}. The categories of such a group have one threshold; their kinds
# (hate/threatening) have their own, by each of which {kind:.1%} are flagged at most.

[thresholds]
"""


def _write_thresholds(thresholds: dict[str, float]) -> None:
    lines = [f'"{name}" = {thresholds[name]:.3f}\n' for name in HEAD_CATEGORIES]
    head = _HEAD.format(
        unsafe=MAX_SAFE_FLAGGED,
        injection=MAX_SAFE_TAKEN_FOR_INJECTION,
        kind=MAX_SAFE_FLAGGED_BY_KIND,
    )
    THRESHOLDS.write_text(head + "".join(lines), encoding="utf-8")
