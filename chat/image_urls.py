"""Images that a caller under /v1 sends along, by data URL or by address.

What an address serves is fetched here, not by the model's server: many of those read data URLs only, and
one in a private network would fetch what the caller may not see (retrieval.egress judges addresses).
"""

import base64
import binascii
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chat.api_errors import ApiError
from chat.off_loop import off_loop_for_pictures
from inference import ChatMessage, Image, is_inline
from retrieval.egress import fetch
from retrieval.egress_network import Unfetchable

MAX_BYTES = 10 * 2**20  # of one that is fetched
TIMEOUT_S = 20.0  # for one
MOST_IMAGES = 50
MOST_ADDRESSES = 8
_MOST_CHARS = 8_000  # of an address
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")


def checked_url(url: str) -> str:
    """A data URL of an image as its bytes say, or an address. Raises ValueError."""
    if is_inline(url):
        return data_url(_decoded(url.partition(",")[2]))
    if url.startswith(("http://", "https://")) and len(url) <= _MOST_CHARS:
        return url
    raise ValueError(
        "an image is 'data:image/png;base64,…', or an address with http:// or https://"
    )


def data_url(content: bytes) -> str:
    """Raises ValueError for what is no image that models read."""
    kind = _kind_of(content)
    if kind is None:
        raise ValueError(f"this is no image of these kinds: {', '.join(KINDS)}")
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("what follows 'base64,' is no base64") from None


def _kind_of(content: bytes) -> str | None:
    """By its first bytes: callers' words for it are often wrong, and some servers believe them."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _KINDS.items() if content.startswith(head)), None)


def images_of(messages: Sequence[ChatMessage]) -> Iterator[Image]:
    for message in messages:
        yield from message.get("images", ())


async def with_fetched(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with all images inline. Raises ApiError for what cannot be had."""
    addresses = {one.url for one in images_of(messages) if not is_inline(one.url)}
    if len(addresses) > MOST_ADDRESSES:
        problem = f"messages: at most {MOST_ADDRESSES} images are fetched for one request."
        raise ApiError(400, "invalid_value", problem, "messages")
    inline = {address: await off_loop_for_pictures(_fetched, address) for address in addresses}
    return [_with_urls(message, inline) for message in messages]


def _with_urls(message: ChatMessage, inline: dict[str, str]) -> ChatMessage:
    if not message.get("images"):
        return message
    images = tuple(replace(one, url=inline.get(one.url, one.url)) for one in message["images"])
    return {**message, "images": images}


def _fetched(address: str) -> str:
    try:
        with tempfile.TemporaryDirectory(prefix="vitrine-image-") as folder:
            path = Path(folder) / "image"
            fetch(address, path, max_bytes=MAX_BYTES, timeout_s=TIMEOUT_S)
            return data_url(path.read_bytes())
    except Unfetchable as error:
        status = 413 if error.code == "too_large" else 400
        raise ApiError(status, error.code, f"messages: {error.message}", "messages") from None
    except ValueError as error:
        problem = f"messages: at the address of an image, {error}."
        raise ApiError(400, "invalid_value", problem, "messages") from None
