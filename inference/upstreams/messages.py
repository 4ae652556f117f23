"""What an upstream is asked, and what is heard of it."""

from dataclasses import dataclass, field
from typing import Any

from inference.messages import Failed, Finished
from inference.parsing import Segment

ChatMessage = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One answer of another server's model.

    `messages` and `tools` are in OpenAI's shape (a call's arguments may be an object, and images stand
    beside the content: see images.py); `options` are
    OpenAI's parameters by name, those only that were asked for: the rest is the server's to choose.
    `begun` is the answer's text so far, where it broke off and is to go on.
    """

    request_id: str
    model: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[dict[str, Any], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    begun: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request is on its way to a server, which has said nothing yet."""

    host: str


@dataclass(frozen=True, slots=True)
class Said:
    """More of the answer."""

    segments: tuple[Segment, ...]


UpstreamUpdate = Asked | Said | Finished | Failed
"""What a chat request can hear; exactly one `Finished` or `Failed` comes last."""
