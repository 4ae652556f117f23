"""Vectors of the built-in embedding model with an adapter, from an engine of this process."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inference import BUILTIN_EMBEDDING, Adapter, Engine, EngineConfig
from inference.adapter_files import read_adapter
from moderation.heads.parts import part_input
from moderation.windows import Part, Read

CACHE_DIR = Path("var/moderation")
_AT_ONCE = 512


def vectors_of(
    texts: Sequence[str], adapter: Path, cache_dir: Path | None = None
) -> NDArray[np.float32]:
    """(texts, NUM_DIMENSIONS), of length 1, as the engine serves them; what is longer than the model
    reads is cut. In `cache_dir` lies what was embedded before.

    In the type that the engine chooses: there are some 300,000, and float32 takes more than twice as
    long where a processor multiplies bfloat16.
    """
    cache = cache_dir and cache_dir / f"vectors-{read_adapter(adapter).revision}.npz"
    known = _read(cache)
    missing = [text for text in dict.fromkeys(texts) if _key(text) not in known]
    if missing:
        rows = asyncio.run(_embed(missing, adapter))
        known |= {_key(text): row for text, row in zip(missing, rows, strict=True)}
        _write(cache, known)
    return np.stack([known[_key(text)] for text in texts])


def vectors_of_wholes(parts: Sequence[Part], adapter: Path) -> NDArray[np.float32]:
    """(texts, NUM_DIMENSIONS), of longer ones as of a window: the mean of their pieces."""
    pieces = list(dict.fromkeys(piece for part in parts for piece in part.pieces))
    vectors = dict(zip(pieces, vectors_of(pieces, adapter, CACHE_DIR), strict=True))
    return np.stack([part_input(part, vectors) for part in parts])


def vectors_of_pieces(texts: Sequence[Read], adapter: Path) -> dict[str, NDArray[np.float32]]:
    """Of all pieces that are not blank."""
    pieces = list(dict.fromkeys(piece for text in texts for piece in text if piece.strip()))
    return dict(zip(pieces, vectors_of(pieces, adapter, CACHE_DIR), strict=True))


async def _embed(texts: Sequence[str], path: Path) -> list[NDArray[np.float32]]:
    adapters = (Adapter("tuned", BUILTIN_EMBEDDING, path),)
    engine = Engine(EngineConfig(Path("var/models"), num_threads=1, adapters=adapters))
    try:
        rows: list[NDArray[np.float32]] = []
        for at in range(0, len(texts), _AT_ONCE):
            done = await engine.embed("tuned", texts[at : at + _AT_ONCE], truncate=True)
            rows += [np.asarray(vector, np.float32) for vector in done.vectors]
        return rows
    finally:
        await engine.close()


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _read(cache: Path | None) -> dict[str, NDArray[np.float32]]:
    if cache is None or not cache.exists():
        return {}
    with np.load(cache, allow_pickle=False) as found:
        return dict(zip(found["keys"].tolist(), found["vectors"], strict=True))


def _write(cache: Path | None, known: dict[str, NDArray[np.float32]]) -> None:
    if cache is None:
        return
    cache.parent.mkdir(parents=True, exist_ok=True)
    np.savez(cache, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
