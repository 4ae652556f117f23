"""Smaller steps, while a device is short of memory. Knows integers only.

A step that finds no memory has advanced nobody, so it may be planned again: with half of the tokens and
half of the sequences, until it fits. What goes well for a while is doubled again: the shortage may have
been a neighbour's, or one long prompt's.
"""

_CALM_STEPS = 64


class Relief:
    """How large a step may be now; at most `budget_tokens` of `num_sequences`."""

    def __init__(self, budget_tokens: int, num_sequences: int) -> None:
        self._most = (budget_tokens, num_sequences)
        self.budget_tokens = budget_tokens
        self.num_sequences = num_sequences
        self._num_calm = 0

    def shrink(self, num_tokens: int, num_sequences: int) -> bool:
        """A step of this size found no memory. False: there is no smaller one."""
        self._num_calm = 0
        if num_tokens <= 1:
            return False
        self.budget_tokens = max(1, min(self.budget_tokens, num_tokens // 2))
        self.num_sequences = max(1, min(self.num_sequences, num_sequences // 2))
        return True

    def note_calm(self) -> None:
        """A step went well."""
        if (self.budget_tokens, self.num_sequences) == self._most:
            return
        self._num_calm += 1
        if self._num_calm >= _CALM_STEPS:
            self._num_calm = 0
            self.budget_tokens = min(self._most[0], 2 * self.budget_tokens)
            self.num_sequences = min(self._most[1], 2 * self.num_sequences)
