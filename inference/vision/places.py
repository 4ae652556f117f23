"""Where images stand in prompts of token ids, for the process that has no model. No torch here."""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from inference.errors import InvalidParameter
from inference.images import Image
from inference.vision.layout import VisionLayout
from inference.vision.prompt_images import PromptImage, digest_of
from inference.vision.rules import num_columns
from inference.vision.sizes import BadImage, size_of

_FIELD = "messages"
_HEAD_CHARS = 2**16  # of base64: most images tell their size in it


class ImagePlaces:
    """`encode` makes ids of a text with a model's marks, `token` is its image token as text."""

    def __init__(
        self, layout: VisionLayout, token: str, encode: Callable[[str], tuple[int, ...]]
    ) -> None:
        self.token_id = layout.image_token_id
        self._layout = layout
        self._token = token
        self._encode = encode
        self._ids_of_size = lru_cache(maxsize=256)(self._ids_for)

    def fill(self, ids: Sequence[int], images: Sequence[Image]) -> tuple[int, ...]:
        """The ids of a chat, in which each image token stands for an image, with its rows and marks.

        Raises InvalidParameter.
        """
        num_places = ids.count(self.token_id)
        if num_places != len(images):
            problem = f"the model's chat template shows {num_places} of {len(images)} images"
            raise InvalidParameter(_FIELD, problem)
        filled: list[int] = []
        is_alone = len(images) == 1
        begin = 0
        for image in images:
            place = ids.index(self.token_id, begin)
            filled += ids[begin:place]
            filled += self._ids_of(image, is_alone)
            begin = place + 1
        return (*filled, *ids[begin:])

    def find(self, ids: Sequence[int], images: Sequence[Image]) -> tuple[PromptImage, ...]:
        """The images in a prompt that `fill` has made of the same ones. Raises InvalidParameter."""
        found: list[PromptImage] = []
        begin = 0
        for image in images:
            own = self._ids_of(image, len(images) == 1)
            offset = _index_of(ids, own, begin)
            if offset is None:
                raise InvalidParameter(_FIELD, "the prompt was made of other images")
            data = _decoded(image)
            columns = num_columns(self._layout.rule, *image_size(image))
            found.append(PromptImage(offset, len(own), digest_of(data), data, columns))
            begin = offset + len(own)
        if self.token_id in ids[begin:]:
            raise InvalidParameter(_FIELD, "the prompt was made of more images")
        return tuple(found)

    def _ids_of(self, image: Image, is_alone: bool) -> tuple[int, ...]:
        return self._ids_of_size(*image_size(image), is_alone)

    def _ids_for(self, height: int, width: int, is_alone: bool) -> tuple[int, ...]:
        return self._encode(self._layout.rule.text(self._token, height, width, is_alone))


def with_data(
    images: Sequence[PromptImage], given: Iterable[Image]
) -> tuple[PromptImage, ...] | None:
    """Images of which only is known where they stood, with the data of those that are given.

    None where one is not among these. Raises InvalidParameter.
    """
    data = {digest_of(one): one for one in map(_decoded, given)}
    found = [replace(one, data=data[one.digest]) for one in images if one.digest in data]
    return tuple(found) if len(found) == len(images) else None


def image_size(image: Image) -> tuple[int, int]:
    """Height and width in pixels. Raises InvalidParameter for what no model here looks at."""
    try:
        return size_of(_decoded(image, _HEAD_CHARS))
    except BadImage:
        pass  # a long head
    try:
        return size_of(_decoded(image))
    except BadImage as error:
        raise InvalidParameter(_FIELD, str(error)) from error


def _index_of(ids: Sequence[int], part: tuple[int, ...], begin: int) -> int | None:
    while True:
        try:
            begin = ids.index(part[0], begin)
        except ValueError:
            return None
        if tuple(ids[begin : begin + len(part)]) == part:
            return begin
        begin += 1


def _decoded(image: Image, most_chars: int | None = None) -> bytes:
    """Of its base64 the first so many characters, or all. Raises InvalidParameter."""
    _, data = image.source
    try:
        return base64.b64decode(data[:most_chars], validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidParameter(_FIELD, "an image is no sound data URL") from error
