"""Pictures that a model makes of words, and of other pictures: what is asked, and what comes back."""

from dataclasses import dataclass, field
from pathlib import Path

from inference.messages import Usage

_HEADS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
MADE_KINDS = ("image/png", "image/jpeg", "image/webp")
"""What models make, and what they are given to change."""


def picture_kind(content: bytes) -> str | None:
    """The media type by the first bytes, 12 of which are enough: words for it are often wrong, and some
    servers believe them. None: no picture."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _HEADS.items() if content.startswith(head)), None)


@dataclass(frozen=True, slots=True)
class GivenPicture:
    """A file on this machine, one of `MADE_KINDS`."""

    path: Path
    media_type: str


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """Pictures to be made of a prompt, or with `given` (16 at most) to be made of those: `mask` has its
    transparent parts where the first of them is to change.

    All else is in OpenAI's words ("1024x1024", "high" …), and "" where the model is to decide;
    `compression` is in percent, `fidelity` how closely faces and features of `given` are kept.
    """

    model: str
    prompt: str
    num_pictures: int = 1
    size: str = ""
    quality: str = ""
    style: str = ""
    background: str = ""
    form: str = ""
    compression: int | None = None
    moderation: str = ""
    fidelity: str = ""
    given: tuple[GivenPicture, ...] = ()
    mask: GivenPicture | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """`revised_prompt` is what the model was really told, "" where the server has not said."""

    content: bytes = field(repr=False)
    media_type: str
    revised_prompt: str = ""


@dataclass(frozen=True, slots=True)
class ToldTokens:
    """As the server has counted: `text` and `images` are those of the prompt, `written` those of what
    was made."""

    prompt: int
    text: int
    images: int
    written: int


@dataclass(frozen=True, slots=True)
class Pictures:
    """At most as many as were asked for. `usage` is what the server has told, and where it has not,
    about what it took; `told` is all that OpenAI's API tells of it, where this server does. So are
    `size`, `quality` and `background`, "" where it does not."""

    pictures: tuple[Picture, ...]
    usage: Usage
    told: ToldTokens | None = None
    size: str = ""
    quality: str = ""
    background: str = ""
