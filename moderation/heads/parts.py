"""What heads say of a text by its parts: one way to score for those who fit heads and who serve them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moderation.heads.features import n_grams
from moderation.heads.weights import Floats, Inputs, Weights
from moderation.windows import Part, Read, words_in

Vectors = Mapping[str, NDArray[np.float32]]
# Beside vectors of length 1.
_LIKENESS = 2.0
_OF_PLACE = 0.5


@dataclass(frozen=True, slots=True)
class Said:
    """Of texts, the highest logits of their windows, (texts, outputs); those of each text as a whole,
    which are those of the window where there is one; the highest of their pieces, (texts, outputs of
    pieces), -inf where there are none; and how many windows, (texts,): none of a blank text."""

    windows: Floats
    wholes: Floats
    pieces: Floats
    num_windows: Floats


def said_of(
    texts: Sequence[Read], vectors: Vectors, of_windows: Weights, of_pieces: Weights
) -> Said:
    """By heads for windows and for pieces. `vectors` has all pieces that are not blank."""
    windows = [[part for part in text.parts if part.text.strip()] for text in texts]
    wholes = [whole_of(text) if text.pieces else None for text in texts]
    parts = list(dict.fromkeys([*(part for own in windows for part in own), *filter(None, wholes)]))
    rows = np.array([part_input(part, vectors) for part in parts], np.float32)
    rows = rows.reshape(len(parts), len(of_windows.of_vector))
    logits = of_windows.logits_by_row(Inputs(rows, n_grams([part.text for part in parts])))
    place = {part: at for at, part in enumerate(parts)}
    num_texts = len(texts)
    said = Said(
        np.full((num_texts, of_windows.bias.size), -np.inf),
        np.full((num_texts, of_windows.bias.size), -np.inf),
        np.full((num_texts, of_pieces.bias.size), -np.inf),
        np.array([float(len(own)) for own in windows]),
    )
    for at, (text, own, whole) in enumerate(zip(texts, windows, wholes, strict=True)):
        if own:
            said.windows[at] = logits[[place[part] for part in own]].max(axis=0)
            said.wholes[at] = said.windows[at] if whole is None else logits[place[whole]]
        if text.pieces:
            inputs = Inputs(piece_inputs(text, vectors), n_grams(text.pieces))
            said.pieces[at] = of_pieces.logits_by_row(inputs).max(axis=0)
    return said


def whole_of(text: Read) -> Part:
    """All of a text that has pieces, as the examples for attacks are learnt."""
    return Part(" ".join(text.pieces), text.pieces)


def part_input(part: Part, vectors: Vectors) -> NDArray[np.float32]:
    """Its vector where it was read as a whole, else the mean of its pieces by their words."""
    if len(part.pieces) == 1:
        return vectors[part.pieces[0]]
    return _unit(_weights(part.pieces) @ _rows(part.pieces, vectors))


def piece_inputs(text: Read, vectors: Vectors) -> NDArray[np.float32]:
    """For each piece its meaning, that of all others, how alike these are, and if it's first or last."""
    own = _rows(text.pieces, vectors)
    weighted = own * _weights(text.pieces)[:, None]
    others = weighted.sum(axis=0) - weighted
    others = others / np.maximum(np.linalg.norm(others, axis=1, keepdims=True), 1e-6)
    place = np.zeros((len(own), 2), np.float32)
    place[0, 0] = place[-1, 1] = _OF_PLACE
    alike = _LIKENESS * (own * others).sum(axis=1, keepdims=True)
    rows = np.concatenate([own, others, alike, place], axis=1)
    return rows.astype(np.float32, copy=False)


def _rows(pieces: Sequence[str], vectors: Vectors) -> NDArray[np.float32]:
    return np.array([vectors[piece] for piece in pieces], np.float32)


def _weights(pieces: Sequence[str]) -> NDArray[np.float32]:
    return np.array([words_in(piece) for piece in pieces], np.float32)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector / np.float32(max(float(np.linalg.norm(vector)), 1e-6))
    return found
