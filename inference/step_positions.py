"""Where the tokens of one step are, for rotary embedding. No torch here."""

from collections.abc import Iterable

from inference.sequence import Sequence


class StepPositions:
    """`times` are one position for each token. Lines and columns are others only where rows of an image
    are in the step, and kept from then on."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self._lines: list[int] = []
        self._columns: list[int] = []
        self._has_grid = False

    def add(self, sequence: Sequence, start: int, end: int) -> None:
        """Tokens `start` up to `end` of a sequence, behind those that were added before."""
        if sequence.grid is None:
            self._add(range(start, end), range(start, end), range(start, end))
            return
        times, lines, columns = sequence.grid.between(start, end)
        if lines is not times and not self._has_grid:
            self._lines, self._columns = [*self.times], [*self.times]
            self._has_grid = True
        self._add(times, lines, columns)

    def _add(self, times: Iterable[int], lines: Iterable[int], columns: Iterable[int]) -> None:
        self.times += times
        if self._has_grid:
            self._lines += lines
            self._columns += columns

    @property
    def planes(self) -> tuple[list[int], ...]:
        """Lines and columns; nothing where they are the times."""
        return (self._lines, self._columns) if self._has_grid else ()
