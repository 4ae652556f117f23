"""Of the embedding model: vectors that tell harm and attacks from the rest. Any engine whose vectors the
heads judge needs it. Imports no numpy, as the heads do: no web process waits for it at its start."""

from pathlib import Path

from inference import BUILTIN_EMBEDDING, Adapter

HEADS_ADAPTER = Adapter(
    "moderation-heads",
    BUILTIN_EMBEDDING,
    Path(__file__).parent / "heads" / "adapter",
    is_internal=True,
)
