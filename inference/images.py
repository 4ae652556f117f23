"""Images within messages, for models that see.

A message with images has them under "images", and in its content U+FFFC (Unicode's "object replacement
character") where each of them stands: so whoever reads contents reads text. Images that have no place
stand in front of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

IMAGE_PLACE = "\ufffc"


@dataclass(frozen=True, slots=True)
class Image:
    """`url` is "data:image/…;base64,…"; `detail` is OpenAI's word for how closely it is looked at."""

    url: str = field(repr=False)
    detail: str = ""

    @property
    def source(self) -> tuple[str, str]:
        """Its media type, and its bytes in base64."""
        head, _, data = self.url.partition(";base64,")
        return head.removeprefix("data:"), data


def images_of(messages: Iterable[dict[str, Any]]) -> list[Image]:
    """All images within messages, in their order."""
    return [image for message in messages for image in message.get("images", ())]


def pieces_of(message: dict[str, Any]) -> list[str | Image]:
    """A message's content as texts and images in their order; texts of white space alone are none."""
    images = list(message.get("images", ()))
    texts = message["content"].split(IMAGE_PLACE)
    num_placed = min(len(images), len(texts) - 1)
    pieces: list[str | Image] = list(images[: len(images) - num_placed])
    placed = images[len(images) - num_placed :]
    for number, text in enumerate(texts):
        if text.strip():
            pieces.append(text)
        if number < num_placed:
            pieces.append(placed[number])
    return pieces
