"""Heads on the built-in embedding model: cheap, and always there.

`readings(text)` says what to embed of a text, `Heads().score(vectors, readings)` gives probabilities,
and the `worst` of them are the text's.
"""

from moderation.categories import worst
from moderation.heads.heads import Heads, shipped_thresholds
from moderation.windows import readings

__all__ = ["Heads", "readings", "shipped_thresholds", "worst"]
