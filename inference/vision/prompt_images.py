"""Images within a prompt of token ids: where each stands, and what its place is known by."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from inference.pickling import pickled_by_fields


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class PromptImage:
    """`num_ids` ids of a prompt, from number `offset` on, stand for an image. Those among them that are
    the model's image token are its rows; others are marks around them.

    `data` is a PNG or a JPEG, `digest` names it in hexadecimal. `num_columns` is how many of its rows
    stand beside each other, for models whose positions are those of a grid; then all ids are rows.
    """

    offset: int
    num_ids: int
    digest: str
    data: bytes = field(repr=False)
    num_columns: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.num_ids

    @property
    def key(self) -> int:
        """What stands in caches for each of its ids: no token, and no other image's. 62 bits."""
        named = f"{self.digest} {self.num_ids}".encode()
        return -1 - (int.from_bytes(hashlib.blake2b(named, digest_size=8).digest()) >> 2)


def without_data(images: Iterable[PromptImage]) -> tuple[PromptImage, ...]:
    """What is kept of them: where they stood, and which they were."""
    return tuple(replace(image, data=b"") for image in images)


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def cache_ids(ids: Sequence[int], images: Iterable[PromptImage]) -> tuple[int, ...]:
    """The ids of a prompt as caches know them: two images never look alike, though their ids do."""
    known = list(ids)
    for image in images:
        known[image.offset : image.end] = [image.key] * image.num_ids
    return tuple(known)
