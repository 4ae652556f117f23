"""Guesses of what a sequence will write next, from what it has read and written.

The last tokens are looked up earlier in the sequence; what followed them there is the draft. It costs
nothing. Copying (names, code, quotes, numbers) is where it helps. Source: Saxena 2023, "Prompt Lookup
Decoding".
"""

from collections.abc import Sequence

MOST_DRAFTED = 8  # tokens, by whatever way
_LENGTHS = (4, 2)  # of what is looked up; the longer match is the better guess
_MOST_AT_FIRST = 4
_POOR = 0.25  # a share of accepted tokens below which drafts are not worth their rows
_PAUSE_TOKENS = 24
_REACH_TOKENS = 16_384  # to index as many takes some 15 ms, once
_MEMORY = 0.8  # of the rolling share, per draft


class NgramDrafter:
    """Drafts for one sequence, which only grows. Knows integers only."""

    def __init__(self) -> None:
        self._ends: dict[tuple[int, ...], int] = {}  # the latest place where these tokens end
        self._num_indexed = 0
        self._most = _MOST_AT_FIRST
        self._accepted_share = 1.0
        self._pauses_until = 0

    def draft(self, token_ids: Sequence[int], most: int) -> list[int]:
        """Up to `most` tokens that followed the same last tokens before; often none."""
        most = min(most, self._most)
        if most <= 0 or len(token_ids) < self._pauses_until:
            return []
        self._index(token_ids)
        for length in _LENGTHS:
            start = self._ends.get(tuple(token_ids[-length:]))
            if start is not None:
                return _continued(token_ids, start, most)
        return []

    def learn(self, num_drafted: int, num_accepted: int, num_tokens: int) -> None:
        """What became of a draft of a sequence that is `num_tokens` long now."""
        share = num_accepted / num_drafted
        self._accepted_share = _MEMORY * self._accepted_share + (1 - _MEMORY) * share
        if share == 1.0:
            self._most = min(MOST_DRAFTED, self._most + 2)
        elif share < 0.5:
            self._most = max(2, self._most - 1)
        if self._accepted_share < _POOR:
            self._accepted_share = 2 * _POOR
            self._pauses_until = num_tokens + _PAUSE_TOKENS

    def _index(self, token_ids: Sequence[int]) -> None:
        """Note all places but the last: that one is looked up. What lies far back is left out."""
        first = max(self._num_indexed + 1, len(token_ids) - _REACH_TOKENS)
        for end in range(first, len(token_ids)):
            for length in _LENGTHS:
                if end >= length:
                    self._ends[tuple(token_ids[end - length : end])] = end
        self._num_indexed = max(self._num_indexed, len(token_ids) - 1)


def _continued(token_ids: Sequence[int], start: int, most: int) -> list[int]:
    """What stands behind `start`; where that runs into the end, the draft itself goes on."""
    period = len(token_ids) - start
    return [token_ids[start + i % period] for i in range(most)]
