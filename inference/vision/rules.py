"""How many rows of a prompt an image takes, and how a model writes its place, by the families' rules.

Pure arithmetic over an image's size in pixels. Sources: transformers 5.23, `pack_image_features` of
`models/llava_next` and `models/llava_onevision`, `_preprocess` of `models/idefics3` and of
`models/got_ocr2`, which prepares InternVL's, and `smart_resize` of `models/qwen2_vl`.
"""

from dataclasses import dataclass
from math import ceil, floor, inf, prod, sqrt
from typing import Protocol

MOST_ROWS = 1280  # of a grid: its tower attends to all patches at once, and files allow 16,384
_LARGEST_PX = 4096  # Idefics 3 makes no image larger, whatever its files say
_MOST_OVER = 1.1  # of what LLaVA-OneVision's limit of tiles says


class Rule(Protocol):
    """`token` is the model's image token as text; each one is a row."""

    def text(self, token: str, height: int, width: int, is_alone: bool = True) -> str:
        """What stands in a prompt for an image of so many pixels, rows and marks; `is_alone`: it is the
        only image there."""
        ...


@dataclass(frozen=True, slots=True)
class OneTile:
    """LLaVA: every image becomes one square."""

    num_rows: int

    def text(self, token: str, height: int, width: int, is_alone: bool = True) -> str:
        return token * self.num_rows


@dataclass(frozen=True, slots=True)
class AnyResolution:
    """LLaVA-NeXT and -OneVision: the image as one tile, then in so many tiles as fit it best.

    A tile is `tile_px` square and has `side` times `side` rows. Padding is cut off again, and each line
    of what is left ends with a row of its own. More than `most_tiles` become fewer rows, where that is
    given. With `tiles_lone_only` an image that is not alone is one square, filled up with bars, and a
    row that ends it.
    """

    num_base_rows: int
    tile_px: int
    side: int
    resolutions: tuple[tuple[int, int], ...]
    most_tiles: int | None = None
    tiles_lone_only: bool = False

    def text(self, token: str, height: int, width: int, is_alone: bool = True) -> str:
        if not is_alone and self.tiles_lone_only:
            return token * (self.num_base_rows + 1)
        return token * self.num_rows(height, width)

    def num_rows(self, height: int, width: int) -> int:
        best_height, best_width = self._best(height, width)
        lines = best_height // self.tile_px * self.side
        columns = best_width // self.tile_px * self.side
        if width / height > columns / lines:
            lines -= 2 * ((lines - int(round(height * (columns / width), 7))) // 2)
        else:
            columns -= 2 * ((columns - int(round(width * (lines / height), 7))) // 2)
        if self.most_tiles is not None:
            ratio = sqrt(lines * columns / (self.most_tiles * self.side**2))
            if ratio > _MOST_OVER:
                lines, columns = int(lines // ratio), int(columns // ratio)
        return self.num_base_rows + lines * (columns + 1)

    def _best(self, height: int, width: int) -> tuple[int, int]:
        """The resolution in which most of the image is left, and of such the one with least around."""

        def worth(resolution: tuple[int, int]) -> tuple[int, int]:
            scale = min(resolution[1] / width, resolution[0] / height)
            left = min(int(width * scale) * int(height * scale), width * height)
            return left, left - resolution[0] * resolution[1]

        return max(self.resolutions, key=worth)  # of equals the first, as in transformers


def is_one_square(rule: Rule, num_ids: int) -> bool:
    """Whether an image that takes so many ids is not in tiles, because others are in its prompt."""
    if not isinstance(rule, AnyResolution) or not rule.tiles_lone_only:
        return False
    return num_ids == rule.num_base_rows + 1  # in tiles it has two more at least


@dataclass(frozen=True, slots=True)
class Canvas:
    """InternVL: a canvas of at most `most_tiles` of `tile_px`, of the form nearest to that of the image,
    and the whole behind it where those are several."""

    num_rows: int
    tile_px: int
    least_tiles: int
    most_tiles: int

    def text(self, token: str, height: int, width: int, is_alone: bool = True) -> str:
        return f"<img>{token * self.num_rows * self.num_tiles(height, width)}</img>"

    def num_tiles(self, height: int, width: int) -> int:
        if self.most_tiles <= 1:
            return 1
        lines, columns = self._grid(height, width)
        return lines * columns + (lines * columns > 1)

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        """Lines and columns. Of forms as near, the largest that the image fills to a half at least."""
        best, best_distance = (1, 1), inf
        for lines, columns in self._grids():
            distance = abs(width / height - columns / lines)
            is_filled = width * height > 0.5 * self.tile_px**2 * lines * columns
            if distance < best_distance or (distance == best_distance and is_filled):
                best, best_distance = (lines, columns), distance
        return best

    def _grids(self) -> list[tuple[int, int]]:
        """Small ones first, and of one size narrow ones."""
        sides = range(1, self.most_tiles + 1)
        grids = [(lines, columns) for columns in sides for lines in sides]
        fitting = [one for one in grids if self.least_tiles <= prod(one) <= self.most_tiles]
        return sorted(fitting, key=prod)


@dataclass(frozen=True, slots=True)
class MarkedTiles:
    """Idefics 3 and SmolVLM: tiles of `tile_px`, each behind a mark of its place, and the whole at last.

    The longer side becomes `longest_px` first. Without `is_split` there is the whole only.
    """

    num_rows: int
    tile_px: int
    longest_px: int
    is_split: bool = True

    def text(self, token: str, height: int, width: int, is_alone: bool = True) -> str:
        rows, around = token * self.num_rows, "<fake_token_around_image>"
        whole = f"{around}<global-img>{rows}{around}"
        num_lines, num_columns = self.tiles(height, width)
        if not num_lines:
            return whole
        tiles = "".join(
            "".join(
                f"{around}<row_{line}_col_{column}>{rows}" for column in range(1, num_columns + 1)
            )
            + "\n"
            for line in range(1, num_lines + 1)
        )
        return f"{tiles}\n{whole}"

    def tiles(self, height: int, width: int) -> tuple[int, int]:
        """Lines of tiles, and tiles in each; (0, 0) where there is the whole only."""
        if not self.is_split:
            return 0, 0
        height, width = _below(*_scaled(height, width, self.longest_px))
        ratio, tile_px = width / height, self.tile_px
        if width >= height:
            width = ceil(width / tile_px) * tile_px
            height = ceil(int(width / ratio) / tile_px) * tile_px
        else:
            height = ceil(height / tile_px) * tile_px
            width = ceil(int(height * ratio) / tile_px) * tile_px
        if height <= tile_px and width <= tile_px:
            return 0, 0
        return height // tile_px, width // tile_px


@dataclass(frozen=True, slots=True)
class Grid:
    """Qwen-VL: the image nearly as it is, in squares of `square_px`, each of which is a row: from top to
    bottom, and in each line from left to right. It is made larger or smaller to have at least
    `least_pixels` and at most `most_pixels`. The chat template writes the marks around it.
    """

    square_px: int
    least_pixels: int
    most_pixels: int

    def text(self, token: str, height: int, width: int, is_alone: bool = True) -> str:
        return token * prod(self.grid(height, width))

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Lines, and rows in each."""
        px = self.square_px
        lines, columns = round(height / px), round(width / px)
        num_pixels = lines * columns * px**2
        if num_pixels > self.most_pixels:
            ratio = sqrt(height * width / self.most_pixels)
            return max(1, floor(height / ratio / px)), max(1, floor(width / ratio / px))
        if num_pixels < self.least_pixels:
            ratio = sqrt(self.least_pixels / (height * width))
            return ceil(height * ratio / px), ceil(width * ratio / px)
        return lines, columns


def num_columns(rule: Rule, height: int, width: int) -> int:
    """How many rows of an image stand beside each other in positions; 0 where they stand in a line."""
    return rule.grid(height, width)[1] if isinstance(rule, Grid) else 0


def _scaled(height: int, width: int, longest_px: int) -> tuple[int, int]:
    """With the longer side so long, and the other one even."""
    ratio = width / height
    if width >= height:
        other = int(longest_px / ratio)
        return max(1, other + other % 2), longest_px
    other = int(longest_px * ratio)
    return longest_px, max(1, other + other % 2)


def _below(height: int, width: int) -> tuple[int, int]:
    ratio = width / height
    if width >= height and width > _LARGEST_PX:
        return max(1, int(_LARGEST_PX / ratio)), _LARGEST_PX
    if height > width and height > _LARGEST_PX:
        return _LARGEST_PX, max(1, int(_LARGEST_PX * ratio))
    return height, width
