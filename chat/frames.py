"""Frames from the browser, as values. Everything in them is untrusted."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.access import as_uuid
from chat.errors import BadFrame

MAX_FRAME_BYTES = 256 * 1024
MAX_CLIENT_ID_CHARS = 64


@dataclass(frozen=True, slots=True)
class SendMessage:
    client_id: str
    text: str
    conversation: UUID | None
    parent: UUID | None
    model: str | None


@dataclass(frozen=True, slots=True)
class FollowRun:
    run: UUID
    after: int


@dataclass(frozen=True, slots=True)
class UnfollowRun:
    run: UUID


@dataclass(frozen=True, slots=True)
class StopRun:
    run: UUID
    chars: int | None


@dataclass(frozen=True, slots=True)
class AckRun:
    run: UUID
    seq: int


@dataclass(frozen=True, slots=True)
class Ping:
    pass


Frame = SendMessage | FollowRun | UnfollowRun | StopRun | AckRun | Ping


def parse(raw: str) -> Frame:
    """One frame. Raises BadFrame for whatever is not understood, NotFound for ids that are none."""
    if len(raw.encode("utf-8", "surrogatepass")) > MAX_FRAME_BYTES:
        raise BadFrame(f"A frame may have at most {MAX_FRAME_BYTES // 1024} KiB.")
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadFrame("The frame is no JSON.") from None
    if not isinstance(values, dict):
        raise BadFrame("The frame is no JSON object.")
    fields = _Fields(values)
    match values.get("type"):
        case "message.send":
            return SendMessage(
                client_id=fields.client_id(),
                text=fields.text("text"),
                conversation=fields.optional_id("conversation"),
                parent=fields.optional_id("parent"),
                model=fields.text("model") if values.get("model") is not None else None,
            )
        case "run.follow":
            return FollowRun(fields.id("run"), fields.count("after"))
        case "run.unfollow":
            return UnfollowRun(fields.id("run"))
        case "run.stop":
            is_open = values.get("chars") is None
            return StopRun(fields.id("run"), None if is_open else fields.count("chars"))
        case "run.ack":
            return AckRun(fields.id("run"), fields.count("seq"))
        case "ping":
            return Ping()
    raise BadFrame("The frame has no type that the server knows.")


class _Fields:
    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if not isinstance(value, str):
            raise BadFrame(f"'{name}' has to be a text.")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadFrame(f"'{name}' holds half a character (a lone surrogate).") from None
        return value

    def client_id(self) -> str:
        value = self.text("client_id")
        if not 0 < len(value) <= MAX_CLIENT_ID_CHARS or "\x00" in value:
            raise BadFrame(f"'client_id' has 1 to {MAX_CLIENT_ID_CHARS} characters.")
        return value

    def count(self, name: str) -> int:
        value = self._values.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
            raise BadFrame(f"'{name}' has to be a whole number from 0 on.")
        return value

    def id(self, name: str) -> UUID:
        return as_uuid(self.text(name), name)

    def optional_id(self, name: str) -> UUID | None:
        return None if self._values.get(name) is None else self.id(name)
