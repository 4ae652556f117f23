"""How large an image is, by its head alone: nothing is unpacked."""

import io
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG")
MOST_PIXELS = 40_000_000
MOST_BYTES = 32 * 2**20
# Who makes the shorter side as long as a tile, and cuts only then, makes a strip of one pixel by 1,568 a
# picture of 1.7 GiB.
MOST_TIMES_LONGER = 50

_ORIENTATION = 0x0112  # of EXIF
_TURNS = {  # Pillow's names of them
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_LYING = frozenset({"TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90"})


class BadImage(ValueError):
    """A sentence about what is wrong with it."""


def opened(data: bytes) -> "Image.Image":
    """Its head is read. Raises BadImage for what is no image, or too large or narrow a one."""
    from PIL import Image  # 0.1 seconds of every start, and most processes look at no image

    if len(data) > MOST_BYTES:
        raise BadImage(f"an image has more than {MOST_BYTES // 2**20} MiB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", Image.DecompressionBombWarning
            )  # they are counted below
            found = Image.open(io.BytesIO(data), formats=FORMATS)
    except Exception as error:  # Pillow's readers raise whatever they meet
        raise BadImage("an image cannot be read") from error
    if found.width * found.height > MOST_PIXELS:
        raise BadImage(f"an image has more than {MOST_PIXELS // 10**6} million pixels")
    if max(found.size) > MOST_TIMES_LONGER * min(found.size):
        problem = f"an image is more than {MOST_TIMES_LONGER} times as long as it is wide or high"
        raise BadImage(problem)
    return found


def size_of(data: bytes) -> tuple[int, int]:
    """Height and width in pixels, of the image upright. Raises BadImage."""
    with opened(data) as found:
        is_lying = turn_of(found) in _LYING
        return (found.width, found.height) if is_lying else (found.height, found.width)


def upright(found: "Image.Image") -> "Image.Image":
    """As it is meant to be seen, in RGB."""
    from PIL.Image import Transpose

    turn = turn_of(found)
    seen = found.convert("RGB")
    return seen.transpose(Transpose[turn]) if turn else seen


def turn_of(found: "Image.Image") -> str | None:
    """By what its head says, which is all that is read where nothing is unpacked; a PNG may say it
    behind its pixels, too, where neither process looks."""
    if "exif" not in found.info:  # else Pillow unpacks a PNG to look for it
        return None
    try:
        return _TURNS.get(found.getexif().get(_ORIENTATION, 1))
    except Exception:  # Pillow's readers raise whatever they meet
        return None
