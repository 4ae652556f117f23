"""Classes of requests: whoever waits in person goes before programs, and those before chores."""

from collections.abc import Iterable
from typing import Literal

Priority = Literal["interactive", "api", "background"]
RANK: dict[Priority, int] = {"interactive": 0, "api": 1, "background": 2}
"""The lowest goes first."""
MOST_IMAGE_BYTES = 256 * 2**20
"""Of the images of all that wait for a model, in each process that holds them."""


def has_room(
    priority: Priority,
    num_tokens: float,
    waiting: Iterable[tuple[Priority, float]],
    most_tokens: float,
) -> bool:
    """Whether a queue that holds so many tokens takes in one more; `waiting` have theirs.

    A lone one always has room: however long, there is nothing better to do. What waits in a lower class
    takes no room from it, for it is behind it.
    """
    ahead = [num for other, num in waiting if RANK[other] <= RANK[priority]]
    return not ahead or sum(ahead) + num_tokens <= most_tokens


def has_room_for_images(
    priority: Priority, num_bytes: int, waiting: Iterable[tuple[Priority, int]]
) -> bool:
    """As `has_room`, of the bytes of images, which are many for their few tokens."""
    return not num_bytes or has_room(
        priority, num_bytes, ((other, num) for other, num in waiting if num), MOST_IMAGE_BYTES
    )
