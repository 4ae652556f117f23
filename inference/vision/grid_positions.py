"""Where tokens are for rotary embedding in a prompt whose images are grids. No torch here.

Source: Wang et al. 2024, "Qwen2-VL" (arXiv:2409.12191), section 2.1, "Multimodal Rotary Position
Embedding (M-RoPE)": a position is three numbers, of time, line and column. Those of a text's token are
all the same, and count on by one. An image's rows have the time at which it begins, and from there on
their lines and columns; what is behind it goes on at the next number that none of these is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from inference.vision.prompt_images import PromptImage


class Positions(NamedTuple):
    """Three numbers for each of some tokens. Where none is in an image all three are one object."""

    times: Sequence[int]
    lines: Sequence[int]
    columns: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Placed:
    """Tokens from `begin` up to `end` are an image's, which begins at `position`."""

    begin: int
    end: int
    num_columns: int
    position: int

    @property
    def end_position(self) -> int:
        num_lines = (self.end - self.begin) // self.num_columns
        return self.position + max(num_lines, self.num_columns)


class GridPositions:
    """Of the tokens of one sequence, by their numbers in it: these stay where keys and values are.

    `shift` is how far positions are from those numbers behind the last image, and never above 0.
    """

    def __init__(self, images: Iterable[PromptImage]) -> None:
        self.shift = 0
        self._placed: list[_Placed] = []
        for image in images:
            num_columns = image.num_columns or max(1, image.num_ids)
            placed = _Placed(image.offset, image.end, num_columns, image.offset + self.shift)
            self._placed.append(placed)
            self.shift = placed.end_position - placed.end

    @classmethod
    def of(cls, images: Sequence[PromptImage]) -> "GridPositions | None":
        """None where positions are the tokens' numbers."""
        return cls(images) if any(image.num_columns for image in images) else None

    def between(self, start: int, end: int) -> Positions:
        """Of tokens `start` up to `end`."""
        found: tuple[list[int], list[int], list[int]] = ([], [], [])
        at, shift, is_seen = start, 0, False
        for image in self._placed:
            if image.begin >= end:
                break
            if at < image.begin:
                _add_text(found, range(at + shift, image.begin + shift))
                at = image.begin
            if at < image.end:
                is_seen = True
                last = min(end, image.end)
                _add_rows(found, image, at - image.begin, last - image.begin)
                at = last
            shift = image.end_position - image.end
        if not is_seen and not found[0]:
            return Positions(*[range(at + shift, end + shift)] * 3)
        if at < end:
            _add_text(found, range(at + shift, end + shift))
        return Positions(*found) if is_seen else Positions(*[found[0]] * 3)


def _add_text(found: tuple[list[int], ...], positions: range) -> None:
    for each in found:
        each += positions


def _add_rows(found: tuple[list[int], ...], image: _Placed, first: int, last: int) -> None:
    times, lines, columns = found
    times += [image.position] * (last - first)
    lines += [image.position + row // image.num_columns for row in range(first, last)]
    columns += [image.position + row % image.num_columns for row in range(first, last)]
