"""The body of a request in pieces, as it comes: what is uploaded goes straight to its place on disk."""

from collections.abc import Iterator

from django.http import HttpRequest
from django.utils.translation import gettext

from chat.errors import TooLarge

_PIECE_BYTES = 2**18


def pieces_of(request: HttpRequest, max_bytes: int) -> Iterator[bytes]:
    """All of it. Raises TooLarge once it is longer than that; in a thread, since it waits."""
    size_bytes = 0
    while piece := request.read(_PIECE_BYTES):
        size_bytes += len(piece)
        if size_bytes > max_bytes:
            text = gettext("The file is larger than %(n)s MiB.")
            raise TooLarge(text % {"n": f"{max_bytes // 2**20:,}"})
        yield piece
