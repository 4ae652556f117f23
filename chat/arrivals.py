"""Connections that have come and not said a word yet: what they are about to ask is on its way.

A client says what it wants with the first packets that follow its handshake. So of many that connect at
once the first can wait a moment for the others, and one alone need not.
"""

from collections.abc import Hashable
from time import monotonic

PATIENCE_S = 0.003
_expected: dict[Hashable, float] = {}  # since when, the oldest first


def connected(connection: Hashable) -> None:
    _forget_silent()
    _expected[connection] = monotonic()


def spoke(connection: Hashable) -> None:
    """Or ended."""
    _expected.pop(connection, None)


def are_expected() -> bool:
    """Whether somebody has connected within PATIENCE_S, and is to speak first."""
    _forget_silent()
    return bool(_expected)


def _forget_silent() -> None:
    before_s = monotonic() - PATIENCE_S
    while _expected:
        oldest = next(iter(_expected))
        if _expected[oldest] >= before_s:
            return
        del _expected[oldest]
