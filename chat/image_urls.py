"""Images that a caller under /v1 sends along, by data URL or by address.

What an address serves is fetched here, not by the model's server: many of those read data URLs only, and
one in a private network would fetch what the caller may not see (retrieval.egress judges addresses).
"""

import base64
import binascii
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from chat.off_loop import off_loop, off_loop_for_fetching
from inference import ChatMessage, Image, InvalidParameter, images_of, picture_kind
from retrieval.egress import fetch
from retrieval.egress_network import Unfetchable

MOST_IMAGES = 500  # of a request, with those of the responses that it goes on from
MOST_CHARS = 64 * 2**20  # of all of them, as data URLs
MOST_ADDRESSES = 8
MOST_BYTES = 20 * 2**20  # of what is fetched for a request
TIMEOUT_S = 30.0  # for all of that
KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
_FIELD = "messages"
_MOST_ADDRESS_CHARS = 8_000
_HEAD = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_FIRST_CHARS = 200  # tell the kind, with line breaks among them


def checked_url(url: str) -> str:
    """A data URL that begins as an image does, or an address; all of it is looked at later, in a thread.
    Raises ValueError."""
    if head := _HEAD.match(url):
        _kind_of(_decoded(url[head.end() : head.end() + _FIRST_CHARS], is_whole=False))
    elif not _ADDRESS.match(url) or len(url) > _MOST_ADDRESS_CHARS:
        raise ValueError(
            "an image is 'data:image/png;base64,…', or an address with http:// or https://"
        )
    return url


def data_url(content: bytes) -> str:
    """Raises ValueError for what is no image that models read."""
    return f"data:{_kind_of(content)};base64,{base64.b64encode(content).decode()}"


def _decoded(text: str, *, is_whole: bool = True) -> bytes:
    """Line breaks and a missing end are taken, as by those who are sent them elsewhere."""
    text = "".join(text.split())
    text = text + "=" * (-len(text) % 4) if is_whole else text[: len(text) // 4 * 4]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("what follows 'base64,' is no base64") from None


def _kind_of(content: bytes) -> str:
    if (kind := picture_kind(content)) is None:
        raise ValueError(f"this is no image of these kinds: {', '.join(KINDS)}")
    return kind


async def with_inline(user: Any, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with all images as data URLs that say what they are. Raises InvalidParameter."""
    images = images_of(messages)
    if len(images) > MOST_IMAGES:
        raise InvalidParameter(_FIELD, f"at most {MOST_IMAGES} images")
    if sum(len(image.url) for image in images) > MOST_CHARS:
        raise InvalidParameter(_FIELD, f"images may take {MOST_CHARS // 2**20} MiB together")
    inline = await inlined(user, [image.url for image in images])
    return [_with_urls(message, inline) for message in messages]


async def inlined(user: Any, urls: Iterable[str]) -> dict[str, str]:
    """By URL the data URL of what it means. Raises InvalidParameter."""
    different = dict.fromkeys(urls)
    addresses = [url for url in different if not _HEAD.match(url)]
    if len(addresses) > MOST_ADDRESSES:
        problem = f"at most {MOST_ADDRESSES} images are fetched for one request"
        raise InvalidParameter(_FIELD, problem)
    try:
        given = [url for url in different if _HEAD.match(url)]
        found = await off_loop(_cleaned, given) if given else {}
        if addresses:
            found |= await off_loop_for_fetching(user, _fetched, addresses)
    except ValueError as error:
        raise InvalidParameter(_FIELD, str(error)) from None
    return found


def _with_urls(message: ChatMessage, inline: dict[str, str]) -> ChatMessage:
    images: tuple[Image, ...] = message.get("images", ())
    if not images:
        return message
    return {**message, "images": tuple(replace(one, url=inline[one.url]) for one in images)}


def _cleaned(urls: Iterable[str]) -> dict[str, str]:
    return {url: data_url(_decoded(url.partition(",")[2])) for url in urls}


def _fetched(addresses: Iterable[str]) -> dict[str, str]:
    """Raises ValueError."""
    end_s, left_bytes = monotonic() + TIMEOUT_S, MOST_BYTES
    found: dict[str, str] = {}
    for address in addresses:
        content = _content(address, left_bytes, max(0.1, end_s - monotonic()))
        left_bytes -= len(content)
        try:
            found[address] = data_url(content)
        except ValueError as error:
            raise ValueError(f"at the address of an image, {error}") from None
    return found


def _content(address: str, most_bytes: int, timeout_s: float) -> bytes:
    with tempfile.TemporaryDirectory(prefix="vitrine-image-") as folder:
        path = Path(folder) / "image"
        try:
            fetch(address, path, max_bytes=max(1, most_bytes), timeout_s=timeout_s)
        except Unfetchable as error:
            problem = error.message.rstrip(".")
            raise ValueError(f"an image cannot be fetched ({error.code}): {problem}") from None
        return path.read_bytes()
