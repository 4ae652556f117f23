"""About how many tokens pictures take, where another server has not told.

Source: OpenAI's guides "Image generation" (what is made, of GPT Image 1 and 1.5) and "Images and vision"
(what is given). Servers that count nothing are charged by the same table: it says how much more a large
picture is than a small one.
"""

import math
import re

from inference.messages import Usage
from inference.pictures import PictureRequest
from inference.upstreams.estimates import about_tokens

_MADE = {
    "low": {"1024x1024": 272, "1024x1536": 408, "1536x1024": 400},
    "medium": {"1024x1024": 1_056, "1024x1536": 1_584, "1536x1024": 1_568},
    "high": {"1024x1024": 4_160, "1024x1536": 6_240, "1536x1024": 6_208},
}
_SAME_AS = {"standard": "medium", "hd": "high"}  # of DALL-E
_SQUARE, _LARGEST = "1024x1024", "1024x1536"  # the second one where the model decides
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
# The short side is brought to 512 pixels, the long one to 2,048 at most: 65 tokens, and 129 for each
# square of 512. What is looked at closely takes as many more as it would take to make it.
_GIVEN, _GIVEN_CLOSELY = 65 + 4 * 129, 6_240


def about_picture_usage(request: PictureRequest, num_pictures: int) -> Usage:
    """For so many pictures. Where the model decides it is the most; who counts too many fits in."""
    each = _GIVEN + (_GIVEN_CLOSELY if request.fidelity == "high" else 0)
    num_given = len(request.given) + (request.mask is not None)
    prompt = max(1, about_tokens(request.prompt)) + num_given * each
    return Usage(prompt, 0, num_pictures * _made(request.size, request.quality))


def _made(size: str, quality: str) -> int:
    of_sizes = _MADE[_SAME_AS.get(quality, quality if quality in _MADE else "high")]
    parts = _SIZE.fullmatch(size)
    if size in of_sizes or parts is None:
        return of_sizes.get(size, of_sizes[_LARGEST])
    num_pixels = int(parts[1]) * int(parts[2])
    return max(1, math.ceil(of_sizes[_SQUARE] * num_pixels / 1024**2))
