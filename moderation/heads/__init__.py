"""Heads on the built-in embedding model: cheap, and always there.

`read(text)` says what to embed of a text, `Heads().judge(texts, vectors)` gives probabilities.
"""

from moderation.heads.heads import Heads, shipped_thresholds
from moderation.windows import read

__all__ = ["Heads", "read", "shipped_thresholds"]
