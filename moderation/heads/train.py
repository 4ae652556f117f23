"""From the examples to an adapter, weights and thresholds: `python -m moderation.heads train`; and, in
some minutes, to the weights for attacks alone: `python -m moderation.heads fit`."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
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
from moderation.heads.attacks import Attacks, Found, fit_combination
from moderation.heads.examples import Document, Example
from moderation.heads.features import n_grams
from moderation.heads.fit import Floats, Inputs, Weights, fit, platt, weights_of_texts
from moderation.heads.heads import (
    ATTACK_OUTPUTS,
    OUTPUTS,
    PIECE_OUTPUTS,
    THRESHOLDS,
    WEIGHTS,
    Heads,
    part_input,
    piece_inputs,
    whole_of,
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
MAX_SAFE_FLAGGED_BY_KIND = 0.001
# Of one writer's; of others the heads before flagged 1.7 to 2.5 %, so there is something left below 2 %.
MAX_NATURAL_FLAGGED = 0.0175
# By the head for foreign tasks alone, and by that for jailbreaks. With 5 of a thousand .73 instead of
# .84 of the attacks of writers apart are found.
MAX_FLAGGED_ALONE = 0.003
ATTACKS_FROM = 0.773
"""The threshold of attacks: their logits are shifted to where it flags `MAX_NATURAL_FLAGGED`."""
NOTHING_FOUND = 0.01
# There are few natural texts beside all the copies that frames and blanks make. By a development set,
# the indirect attacks that are found where 2 % of ordinary texts are flagged: .67 of 86 by one head for
# pieces with 8, .77 by two with 5, .82 by two with 20; and less with the weaker decay of windows.
NATURAL_IMPORTANCE = 4.0
# Of foreign tasks, and of planted orders; of documents with a question as well, or "Summarise this
# letter." before a letter would be taken for an order.
NATURAL_IMPORTANCE_OF_PIECE = (4.0, 20.0)
QUESTION_IMPORTANCE_OF_PIECE = (1.0, 10.0)
L2_OF_PIECE_VECTOR, L2_OF_PIECE_WORDS = 1e-4, 3e-5


@dataclass(frozen=True, slots=True)
class NaturalShare:
    """How many of the natural texts of a kind are flagged by heads that have not seen their group."""

    kind: str
    title: str
    num_flagged: int
    num_texts: int


@dataclass(frozen=True, slots=True)
class Trained:
    """`held_out[i]` are the probabilities of example i by heads that have not seen its group, and
    `held_out_documents[i]` that of the worst piece of `documents[i]`."""

    examples: Sequence[Example]
    held_out: Sequence[Scores]
    documents: Sequence[Document]
    held_out_documents: Sequence[float]
    thresholds: dict[str, float]
    natural: Sequence[NaturalShare]


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

    labels, judged, importance = _outputs_of(examples)
    by_folds = _weights_of_folds(folds, adapters, inputs_by, labels, judged, importance)
    logits = _logits_of_folds(by_folds, folds, adapters, inputs_by)
    scales = np.ones(len(OUTPUTS))
    shifts = np.zeros(len(OUTPUTS))
    for column in range(len(OUTPUTS)):
        known = judged[:, column] > 0
        scales[column], shifts[column] = platt(logits[known, column], labels[known, column])
    documents = written.documents()
    pieces = _PieceExamples(documents)
    pieces_by_folds = pieces.weights_of_folds(adapters)
    piece_logits, piece_scales = pieces.calibrated(pieces_by_folds, adapters)
    columns = [OUTPUTS.index(name) for name in ATTACK_OUTPUTS]
    natural = _natural_logits([one.of(columns) for one in by_folds], pieces_by_folds, adapters)
    attacks, shares = _attacks(natural, scales[OUTPUTS.index("jailbreak")], piece_scales[0])
    of_weights = scales.copy()
    of_weights[columns], shifts[columns] = 1, 0
    probabilities = 1 / (1 + np.exp(-(logits * of_weights + shifts)))
    held_out = [dict(zip(OUTPUTS, row.tolist(), strict=True)) for row in probabilities]
    wholes = logits[:, columns]
    no_pieces = np.full((len(examples), len(PIECE_OUTPUTS)), -np.inf)
    found = Found(wholes, wholes[:, : len(INJECTION_CATEGORIES)], no_pieces, np.ones(len(examples)))
    for scores, *values in zip(held_out, *attacks.probabilities(found), strict=True):
        scores |= dict(zip(INJECTION_CATEGORIES, map(float, values), strict=True))
        scores.pop("planted")
    safe = [scores for one, scores in zip(examples, held_out, strict=True) if not one.categories]
    thresholds = _thresholds(safe, UNSAFE_CATEGORIES, MAX_SAFE_FLAGGED)
    thresholds |= dict.fromkeys(INJECTION_CATEGORIES, ATTACKS_FROM)
    _write_thresholds(thresholds)
    weights = fit(inputs_by(HEADS_ADAPTER.path), labels, judged, importance)
    weights = weights.scaled(of_weights, shifts)
    of_pieces = pieces.fit(HEADS_ADAPTER.path)
    _save(
        {
            "categories": np.array(HEAD_CATEGORIES),
            "of_vector": weights.of_vector,
            "of_words": weights.of_words.astype(np.float16),
            "bias": weights.bias,
            "scales": scales,
            "shifts": shifts,
            "piece_scales": piece_scales,
            "attacks": np.array(astuple(attacks)),
            **_of_pieces(of_pieces),
        }
    )
    none = np.full((len(documents), len(ATTACK_OUTPUTS)), -np.inf)
    worst = np.full((len(documents), len(PIECE_OUTPUTS)), -np.inf)
    np.maximum.at(worst, pieces.owners, piece_logits)
    alone = Found(none, none[:, : len(INJECTION_CATEGORIES)], worst, np.ones(len(documents)))
    highest = attacks.probabilities(alone)[0].tolist()
    return Trained(examples, held_out, documents, highest, thresholds, shares)


def fit_to_adapter() -> list[NaturalShare]:
    """Write the weights, of which those for attacks are fitted anew, to the committed adapter and to all
    of today's examples; of whole texts and of pieces.

    All else stays as the last whole training left it: to calibrate takes an adapter for each fold that
    has not seen it, and hours. Returns what the heads of folds flag of natural texts."""
    with np.load(WEIGHTS, allow_pickle=False) as found:
        kept = dict(found)
    examples = written.training_examples()
    attacks = [OUTPUTS.index(name) for name in ATTACK_OUTPUTS]
    labels, judged, importance = (of_all[:, attacks] for of_all in _outputs_of(examples))
    vectors = _vectors_of_wholes([whole(one.text) for one in examples], HEADS_ADAPTER.path)
    inputs = Inputs(vectors, n_grams([one.text for one in examples]))
    adapters = [HEADS_ADAPTER.path] * NUM_FOLDS
    by_folds = _weights_of_folds(
        _folds(examples), adapters, lambda _: inputs, labels, judged, importance
    )
    pieces = _PieceExamples(written.documents())
    natural = _natural_logits(by_folds, pieces.weights_of_folds(adapters), adapters)
    scales = kept["scales"][OUTPUTS.index("jailbreak")], kept["piece_scales"][0]
    found, shares = _attacks(natural, *scales)
    kept["attacks"] = np.array(astuple(found))
    kept["shifts"][attacks] = 0
    weights = fit(inputs, labels, judged, importance)
    kept["of_vector"][:, attacks] = weights.of_vector
    kept["of_words"][:, attacks] = weights.of_words
    kept["bias"][attacks] = weights.bias
    _save(kept | _of_pieces(pieces.fit(HEADS_ADAPTER.path)))
    return shares


def _natural_logits(
    weights: Sequence[Weights], of_pieces: Sequence[Weights], adapters: Sequence[Path]
) -> Found:
    """Of natural texts as they're scored when served, by heads that have not seen their group."""
    texts = written.natural_texts()
    folds = np.array([_fold(one.group) for one in texts])
    windows = np.zeros((len(texts), len(ATTACK_OUTPUTS)))
    wholes = np.zeros((len(texts), len(INJECTION_CATEGORIES)))
    pieces = np.full((len(texts), len(PIECE_OUTPUTS)), -np.inf)
    num_windows = np.ones(len(texts))
    for fold in range(NUM_FOLDS):
        own = np.flatnonzero(folds == fold)
        texts_read = [read(judged(texts[at].text)) for at in own]
        vectors = _vectors_of_pieces(texts_read, adapters[fold])
        for at, text in zip(own, texts_read, strict=True):
            parts = [part for part in text.parts if part.text.strip()]
            rows = np.stack([part_input(part, vectors) for part in parts])
            inputs = Inputs(rows, n_grams([part.text for part in parts]))
            windows[at] = weights[fold].logits(inputs).max(axis=0)
            wholes[at] = windows[at, : len(INJECTION_CATEGORIES)]
            num_windows[at] = len(parts)
            if text.pieces:
                all_of_it = whole_of(text)
                inputs = Inputs(part_input(all_of_it, vectors)[None], n_grams([all_of_it.text]))
                wholes[at] = weights[fold].logits(inputs)[0, : len(INJECTION_CATEGORIES)]
                inputs = Inputs(piece_inputs(text, vectors), n_grams(text.pieces))
                pieces[at] = of_pieces[fold].logits(inputs).max(axis=0)
    return Found(windows, wholes, pieces, num_windows)


def _attacks(
    natural: Found, jailbreak_scale: float, foreign_scale: float
) -> tuple[Attacks, list[NaturalShare]]:
    """How much each head counts, fitted to natural texts, and shifted so that `ATTACKS_FROM` is the cut;
    and what is flagged of these texts from there, by all that has not seen their fold.

    The cut is the lowest one from which of no writer apart more than `MAX_NATURAL_FLAGGED` of the
    ordinary texts are flagged, by heads that have not seen this writer."""
    texts = written.natural_texts()
    inputs = natural.inputs()
    folds = np.array([_fold(one.group) for one in texts])
    labels = np.array([float(one.kind != "harmless") for one in texts])
    combined = np.zeros(len(texts))
    for fold in set(folds.tolist()):
        of_others = fit_combination(inputs[folds != fold], labels[folds != fold])
        combined[folds == fold] = of_others.combined(natural)[folds == fold]
    harmless = labels == 0
    foreign, jailbreak = natural.foreign_logits(), natural.jailbreak_logits()
    foreign_cut = threshold_for(foreign[harmless], MAX_FLAGGED_ALONE)
    jailbreak_cut = threshold_for(jailbreak[harmless], MAX_FLAGGED_ALONE)
    scores = np.where(foreign >= foreign_cut, np.inf, combined)
    writers = np.array([one.group if written.is_apart(one.group) else "" for one in texts])
    cut = max(
        threshold_for(scores[harmless & (writers == writer)], MAX_NATURAL_FLAGGED)
        for writer in set(writers[harmless].tolist()) - {""}
    )
    flagged: dict[tuple[str, str], list[bool]] = {}
    for one, score in zip(texts, scores, strict=True):
        title = one.group.partition(": ")[2].partition(" [")[0]
        flagged.setdefault((one.kind, title), []).append(bool(score >= cut))
    start = _logit(ATTACKS_FROM)
    fitted = fit_combination(inputs, labels)
    fitted = replace(
        fitted,
        bias=fitted.bias + start - cut,
        jailbreak_scale=float(jailbreak_scale),
        jailbreak_shift=float(start - jailbreak_scale * jailbreak_cut),
        foreign_scale=float(foreign_scale),
        foreign_shift=float(start - foreign_scale * foreign_cut),
    )
    # Attacks are a third of these texts, and in service few: where no head finds anything, a text of one
    # window has its bias alone.
    fitted = fitted.steeper((start - _logit(NOTHING_FOUND)) / (start - fitted.bias), start)
    return fitted, [NaturalShare(*key, sum(own), len(own)) for key, own in flagged.items()]


def _logit(probability: float) -> float:
    return float(np.log(probability / (1 - probability)))


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
    """The pieces that the heads for them learn from: orders, and all of harmless documents."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._texts = [read(document.text) for document in documents]
        self._places: list[int] = []
        self._words: list[str] = []
        labels, known, importance, owners, folds = [], [], [], [], []
        for owner, (document, text) in enumerate(zip(documents, self._texts, strict=True)):
            is_planted = written.is_planted(document.group)
            for place, piece in enumerate(text.pieces):
                is_order = document.is_order and document.is_added(piece)
                if is_order or not document.is_order:
                    self._words.append(piece)
                    self._places.append(place)
                    labels.append([is_order and not is_planted, is_order and is_planted])
                    known.append([not (is_order and is_planted), not is_order or is_planted])
                    importance.append(_importance_of_pieces(document))
                    owners.append(owner)
                    folds.append(_fold(document.group_of(piece)))
        self._grams = n_grams(self._words)
        self._labels: Floats = np.array(labels, float)
        self._judged: Floats = np.array(known, float)
        self._importance: Floats = np.array(importance)
        self.owners: NDArray[np.int64] = np.array(owners)
        self._folds: NDArray[np.int64] = np.array(folds)

    def fit(self, adapter: Path) -> Weights:
        every: NDArray[np.int64] = np.arange(len(self._folds))
        return self._fit_some(every, self._inputs_by(adapter))

    def weights_of_folds(self, adapters: Sequence[Path]) -> list[Weights]:
        """Heads, on vectors of an adapter, neither of which has seen the fold."""
        found = []
        for fold in range(NUM_FOLDS):
            seen: NDArray[np.int64] = np.flatnonzero(self._folds != fold)
            found.append(self._fit_some(seen, self._inputs_by(adapters[fold])))
        return found

    def calibrated(
        self, weights: Sequence[Weights], adapters: Sequence[Path]
    ) -> tuple[Floats, Floats]:
        """Logits of all pieces by heads that have not seen their groups, and their scales by Platt."""
        logits = _logits_of_folds(weights, self._folds, adapters, self._inputs_by)
        scales = np.ones(len(PIECE_OUTPUTS))
        for column in range(len(PIECE_OUTPUTS)):
            known = self._judged[:, column] > 0
            scales[column], _ = platt(logits[known, column], self._labels[known, column])
        return logits, scales

    def _fit_some(self, rows: NDArray[np.int64], inputs: Inputs) -> Weights:
        return fit(
            inputs.of(rows),
            self._labels[rows],
            self._judged[rows],
            self._importance[rows],
            L2_OF_PIECE_VECTOR,
            L2_OF_PIECE_WORDS,
        )

    def _inputs_by(self, adapter: Path) -> Inputs:
        vectors = _vectors_of_pieces(self._texts, adapter)
        rows = [piece_inputs(text, vectors) for text in self._texts]
        places = zip(self.owners, self._places, strict=True)
        return Inputs(np.stack([rows[owner][place] for owner, place in places]), self._grams)


def _importance_of_pieces(document: Document) -> tuple[float, float]:
    if written.is_natural(document.group):
        return NATURAL_IMPORTANCE_OF_PIECE
    if document.added and not document.is_order:
        return QUESTION_IMPORTANCE_OF_PIECE
    return 1.0, 1.0


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


def _outputs_of(examples: Sequence[Example]) -> tuple[Floats, Floats, Floats]:
    """As `labels_of`, of OUTPUTS; and how much each counts. An attack that was planted in a document is
    no example of one that is written to an assistant, and none against it either."""
    labels, known = labels_of(examples)
    direct = HEAD_CATEGORIES.index("prompt_injection")
    is_attack = labels[:, direct] > 0
    is_planted = is_attack & np.array([written.is_planted(one.group) for one in examples])
    known_of_planted = np.where(is_attack & ~is_planted, 0.0, known[:, direct])
    labels[is_planted, direct] = known[is_planted, direct] = 0
    labels = np.column_stack([labels, is_planted])
    importance = np.ones_like(labels)
    natural = np.array([written.is_natural(one.group) for one in examples])
    attacks = [OUTPUTS.index(name) for name in ATTACK_OUTPUTS]
    for attack in attacks:
        importance[natural, attack] = NATURAL_IMPORTANCE
    return labels, np.column_stack([known, known_of_planted]), importance


def _weights_of_folds(
    folds: NDArray[np.int64],
    adapters: Sequence[Path],
    inputs_by: Callable[[Path], Inputs],
    labels: Floats,
    judged: Floats,
    importance: Floats,
) -> list[Weights]:
    """Heads, on vectors of an adapter, neither of which has seen the fold."""
    found = []
    for fold in range(NUM_FOLDS):
        seen: NDArray[np.int64] = np.flatnonzero(folds != fold)
        inputs = inputs_by(adapters[fold])
        found.append(fit(inputs.of(seen), labels[seen], judged[seen], importance[seen]))
    return found


def _logits_of_folds(
    weights: Sequence[Weights],
    folds: NDArray[np.int64],
    adapters: Sequence[Path],
    inputs_by: Callable[[Path], Inputs],
) -> Floats:
    """Of all, by the heads that have not seen their fold."""
    logits = np.zeros((len(folds), weights[0].bias.size))
    for fold in range(NUM_FOLDS):
        unseen: NDArray[np.int64] = np.flatnonzero(folds == fold)
        logits[unseen] = weights[fold].logits(inputs_by(adapters[fold]).of(unseen))
    return logits


def _folds(examples: Sequence[Example]) -> NDArray[np.int64]:
    return np.array([_fold(one.group) for one in examples])


def _fold(group: str) -> int:
    if written.is_apart(group):
        group = group.partition(" [")[0]
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
# together at most {injection:.2%} of the ordinary texts of a writer from whom the heads learnt nothing.
# The categories of such a group have one threshold; their kinds (hate/threatening) have their own, by
# each of which {kind:.1%} are flagged at most.

[thresholds]
"""


def _write_thresholds(thresholds: dict[str, float]) -> None:
    lines = [f'"{name}" = {thresholds[name]:.3f}\n' for name in HEAD_CATEGORIES]
    head = _HEAD.format(
        unsafe=MAX_SAFE_FLAGGED,
        injection=MAX_NATURAL_FLAGGED,
        kind=MAX_SAFE_FLAGGED_BY_KIND,
    )
    THRESHOLDS.write_text(head + "".join(lines), encoding="utf-8")
