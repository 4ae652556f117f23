"""Images that programs send to models of our own engine: drawn anew before anything here unpacks them.

As pictures attached in a chat are (seeing.py): by the process that reads hostile files, upright,
and not larger than models look at. So the engine's workers, which hold everybody's keys and values, see
nothing but JPEGs of ours.
"""

import base64
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from chat.api_errors import ApiError
from chat.kept import Kept
from chat.off_loop import off_loop, off_loop_for_pictures
from chat.seeing import MOST_IMAGES, jpeg_url
from inference import ChatMessage, Image, InvalidParameter, images_of
from retrieval.parsing import Unreadable

logger = logging.getLogger(__name__)

_FIELD = "messages"
_RETRY_AFTER_S = 5.0
# The next request of a chat sends them again. By a hash of what came.
_kept: Kept[bytes, str] = Kept(32 * 2**20, len)


async def drawn(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages, with images that are data URLs as JPEGs. Raises InvalidParameter, and ApiError where
    the server cannot draw any just now."""
    urls = [image.url for image in images_of(messages)]
    if len(urls) > MOST_IMAGES:
        raise InvalidParameter(_FIELD, f"at most {MOST_IMAGES} images for a model that runs here")
    found = {url: await _drawn(url) for url in dict.fromkeys(urls)}
    return [_with_urls(message, found) for message in messages] if found else list(messages)


def _with_urls(message: ChatMessage, urls: dict[str, str]) -> ChatMessage:
    images: tuple[Image, ...] = message.get("images", ())
    if not images:
        return message
    return {**message, "images": tuple(replace(one, url=urls[one.url]) for one in images)}


async def _drawn(url: str) -> str:
    key = await off_loop(_hash_of, url)
    if (kept := _kept.find(key)) is not None:
        return kept
    try:
        jpeg = await off_loop_for_pictures(_redrawn, url)
    except Unreadable as error:
        problem = f"an image cannot be read ({error.code}): {str(error).rstrip('.')}"
        raise InvalidParameter(_FIELD, problem) from None
    except OSError as error:  # a full disk, or no room for another process: no fault of the image
        logger.warning("a program's image cannot be drawn: %s", error)
        text = "The server cannot read images at the moment. Please try again."
        raise ApiError(503, "images_unavailable", text, retry_after_s=_RETRY_AFTER_S) from None
    _kept.keep(key, jpeg)
    return jpeg


def _hash_of(url: str) -> bytes:
    return blake2b(url.encode(), digest_size=16).digest()


def _redrawn(url: str) -> str:
    with tempfile.TemporaryDirectory(prefix="vitrine-image-") as folder:
        path = Path(folder) / "image"
        path.write_bytes(base64.b64decode(Image(url).source[1]))
        return jpeg_url(path)
