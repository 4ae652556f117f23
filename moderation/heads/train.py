"""From the examples to an adapter, weights and thresholds: `python -m moderation.heads train`; and, in
some minutes, to the weights for attacks alone: `python -m moderation.heads fit`."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from moderation.categories import (
    HEAD_CATEGORIES,
    INJECTION_CATEGORIES,
    UNSAFE_CATEGORIES,
    Scores,
)
from moderation.heads import examples as written
from moderation.heads.adapters import is_unseen, tuned_adapters
from moderation.heads.attacks import Found
from moderation.heads.combining import (
    ATTACKS_FROM,
    NaturalShare,
    fit_attacks,
    natural_found,
)
from moderation.heads.examples import Document, Example
from moderation.heads.features import n_grams
from moderation.heads.files import kept, of_pieces, save, write_thresholds
from moderation.heads.fit import fit, platt
from moderation.heads.folds import NUM_FOLDS, folds_of, logits_of_folds, weights_of_folds
from moderation.heads.heads import ATTACK_OUTPUTS, OUTPUTS, PIECE_OUTPUTS, shipped_thresholds
from moderation.heads.labels import labels_of, outputs_of
from moderation.heads.piece_examples import PieceExamples
from moderation.heads.thresholds import MAX_SAFE_FLAGGED, thresholds_of, with_harm_from
from moderation.heads.vectors import vectors_of_wholes
from moderation.heads.weights import Inputs
from moderation.heads_adapter import HEADS_ADAPTER
from moderation.windows import whole


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
    folds = folds_of([one.group for one in examples])
    adapters = tuned_adapters(parts, labels, judged, folds)

    def inputs_by(adapter: Path) -> Inputs:
        return Inputs(vectors_of_wholes(parts, adapter), grams)

    labels, judged, importance = outputs_of(examples)
    by_folds = weights_of_folds(folds, adapters, inputs_by, labels, judged, importance)
    logits = logits_of_folds(by_folds, folds, adapters, inputs_by)
    scales = np.ones(len(OUTPUTS))
    shifts = np.zeros(len(OUTPUTS))
    for column in range(len(OUTPUTS)):
        known = judged[:, column] > 0
        scales[column], shifts[column] = platt(logits[known, column], labels[known, column])
    documents = written.documents()
    pieces = PieceExamples(documents)
    pieces_by_folds = pieces.weights_of_folds(adapters)
    piece_logits = pieces.held_out_logits(pieces_by_folds, adapters)
    columns = [OUTPUTS.index(name) for name in ATTACK_OUTPUTS]
    of_attacks = {fold: one.of(columns) for fold, one in by_folds.items()}
    texts = written.natural_texts()
    natural = natural_found(texts, of_attacks, pieces_by_folds, adapters)
    attacks, shares = fit_attacks(texts, natural, scales[OUTPUTS.index("jailbreak")])
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
    thresholds = thresholds_of(safe, UNSAFE_CATEGORIES, MAX_SAFE_FLAGGED)
    thresholds |= dict.fromkeys(INJECTION_CATEGORIES, ATTACKS_FROM)
    write_thresholds(thresholds)
    weights = fit(inputs_by(HEADS_ADAPTER.path), labels, judged, importance)
    weights = weights.scaled(of_weights, shifts)
    last_pieces = pieces.fit(HEADS_ADAPTER.path)
    save(
        {
            "categories": np.array(HEAD_CATEGORIES),
            "of_vector": weights.of_vector,
            "of_words": weights.of_words.astype(np.float16),
            "bias": weights.bias,
            "scales": scales,
            "shifts": shifts,
            "attacks": np.array(astuple(attacks)),
            **of_pieces(last_pieces),
        }
    )
    none = np.full((len(documents), len(ATTACK_OUTPUTS)), -np.inf)
    worst = np.full((len(documents), len(PIECE_OUTPUTS)), -np.inf)
    np.maximum.at(worst, pieces.owners, piece_logits)
    alone = Found(none, none[:, : len(INJECTION_CATEGORIES)], worst, np.ones(len(documents)))
    highest = attacks.probabilities(alone)[0].tolist()
    return Trained(examples, held_out, documents, highest, thresholds, shares)


def fit_to_adapter() -> list[NaturalShare]:
    """Write the weights, fitted anew to the committed adapter and to all of today's examples.

    What makes probabilities of the logits for harmful content stays as it is, and their threshold is
    chosen by hand: to calibrate takes an adapter for each fold that has not seen it, and hours. How much
    each head for attacks counts, and where they begin, is learnt by the writers of whom the adapter has
    seen nothing. Returns what is flagged of theirs, by heads that have seen nothing of the writer."""
    arrays = kept()
    examples = written.training_examples()
    attacks = [OUTPUTS.index(name) for name in ATTACK_OUTPUTS]
    labels, judged, importance = outputs_of(examples)
    vectors = vectors_of_wholes([whole(one.text) for one in examples], HEADS_ADAPTER.path)
    inputs = Inputs(vectors, n_grams([one.text for one in examples]))
    adapters = [HEADS_ADAPTER.path] * NUM_FOLDS
    unseen = [one for one in written.natural_texts() if is_unseen(one.group)]
    wanted = sorted(set(folds_of([one.group for one in unseen]).tolist()))
    by_folds = weights_of_folds(
        folds_of([one.group for one in examples]),
        adapters,
        lambda _: inputs,
        labels[:, attacks],
        judged[:, attacks],
        importance[:, attacks],
        wanted,
    )
    pieces = PieceExamples(written.documents())
    pieces_by_folds = pieces.weights_of_folds(adapters, wanted)
    natural = natural_found(unseen, by_folds, pieces_by_folds, adapters)
    found, shares = fit_attacks(unseen, natural, arrays["scales"][OUTPUTS.index("jailbreak")])
    of_weights = arrays["scales"].copy()
    of_weights[attacks], arrays["shifts"][attacks] = 1, 0
    weights = fit(inputs, labels, judged, importance).scaled(of_weights, arrays["shifts"])
    arrays |= {
        "of_vector": weights.of_vector,
        "of_words": weights.of_words.astype(np.float16),
        "bias": weights.bias,
        "attacks": np.array(astuple(found)),
    }
    save(arrays | of_pieces(pieces.fit(HEADS_ADAPTER.path)))
    write_thresholds(with_harm_from(shipped_thresholds()))
    return shares
