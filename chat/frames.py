"""Frames from the browser, as values. Everything in them is untrusted."""

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.access import as_uuid
from chat.errors import BadFrame
from chat.parameters import checked_parameters
from chat.personal_models import HistoryStrategy
from chat.retakes import Wish
from chat.setup import AS_USUAL, Setup, checked_system_prompt, checked_tool_servers
from chat.sources import MAX_PICKED, NOTHING, Picked
from chat.spans import trace_id_of
from chat.storable import is_storable

MAX_FRAME_BYTES = 2**20  # as much as a line reads: a message of any script, or a temporary chat
MAX_CLIENT_ID_CHARS = 64
MAX_BESIDE = 3  # models that answer beside the first
MAX_WITHOUT = 100  # passages that are not wanted
_SURROGATE = re.compile(r"\\u[dD]|[\ud800-\udfff]")  # as JSON writes a half, or as it is


@dataclass(frozen=True, slots=True)
class SendMessage:
    client_id: str
    text: str
    conversation: UUID | None
    parent: UUID | None
    model: str | None
    trace_id: str | None = None
    setup: Setup = AS_USUAL
    beside: tuple[str, ...] = ()
    picked: Picked = NOTHING


@dataclass(frozen=True, slots=True)
class RegenerateAnswer:
    client_id: str
    answer: UUID
    model: str | None
    wish: Wish | None
    trace_id: str | None = None
    without: tuple[int, ...] = ()
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class ContinueAnswer:
    client_id: str
    answer: UUID
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class SendTemporary:
    """`messages` are read by temporary.said_of."""

    client_id: str
    model: str | None
    messages: tuple[Any, ...]
    wish: Wish | None
    goes_on: bool
    trace_id: str | None = None
    setup: Setup = AS_USUAL


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
class DecideCall:
    """May this call of a tool be run?"""

    run: UUID
    call: str
    allow: bool


@dataclass(frozen=True, slots=True)
class AckRun:
    run: UUID
    seq: int


@dataclass(frozen=True, slots=True)
class Ping:
    pass


Frame = (
    SendMessage
    | RegenerateAnswer
    | ContinueAnswer
    | SendTemporary
    | FollowRun
    | UnfollowRun
    | StopRun
    | DecideCall
    | AckRun
    | Ping
)


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
    if _SURROGATE.search(raw) and not _is_whole(values):
        raise BadFrame("The frame holds half a character (a lone surrogate).")
    fields = _Fields(values)
    match values.get("type"):
        case "message.send":
            return SendMessage(
                client_id=fields.client_id(),
                text=fields.text("text"),
                conversation=fields.optional_id("conversation"),
                parent=fields.optional_id("parent"),
                model=fields.model(),
                setup=fields.setup(),
                beside=fields.models("beside"),
                picked=fields.picked(),
                trace_id=trace_id_of(values.get("traceparent")),
            )
        case "answer.regenerate":
            return RegenerateAnswer(
                client_id=fields.client_id(),
                answer=fields.id("answer"),
                model=fields.model(),
                wish=fields.wish(),
                trace_id=trace_id_of(values.get("traceparent")),
                without=fields.passages("without"),
                confirms=fields.flag("confirms"),
            )
        case "answer.continue":
            trace_id = trace_id_of(values.get("traceparent"))
            return ContinueAnswer(fields.client_id(), fields.id("answer"), trace_id)
        case "temporary.send":
            return SendTemporary(
                client_id=fields.client_id(),
                model=fields.model(),
                messages=fields.list("messages"),
                wish=fields.wish(),
                goes_on=values.get("goes_on") is True,
                setup=fields.setup(),
                trace_id=trace_id_of(values.get("traceparent")),
            )
        case "run.follow":
            return FollowRun(fields.id("run"), fields.count("after"))
        case "run.unfollow":
            return UnfollowRun(fields.id("run"))
        case "run.stop":
            is_open = values.get("chars") is None
            return StopRun(fields.id("run"), None if is_open else fields.count("chars"))
        case "run.decide":
            call = checked_client_id(fields.text("call"), "call")
            return DecideCall(fields.id("run"), call, fields.flag("allow"))
        case "run.ack":
            return AckRun(fields.id("run"), fields.count("seq"))
        case "ping":
            return Ping()
    raise BadFrame("The frame has no type that the server knows.")


def _is_whole(values: dict[str, Any]) -> bool:
    """Whether each character is one: halves may be repeated in what a frame is answered, by which no
    line can carry them."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def checked_client_id(value: str, name: str = "client_id") -> str:
    """An id that a page has made up. Raises BadFrame."""
    if not 0 < len(value) <= MAX_CLIENT_ID_CHARS or not is_storable(value):
        raise BadFrame(f"'{name}' has 1 to {MAX_CLIENT_ID_CHARS} characters.")
    return value


class _Fields:
    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if not isinstance(value, str):
            raise BadFrame(f"'{name}' has to be a text.")
        return value

    def setup(self) -> Setup:
        prompt, parameters = self._values.get("system_prompt"), self._values.get("parameters")
        servers = self._values.get("tool_servers")
        return Setup(
            self.optional_id("assistant"),
            "" if prompt is None else checked_system_prompt(self.text("system_prompt")),
            None if parameters is None else checked_parameters(parameters),
            self._history_strategy(),
            None if servers is None else checked_tool_servers(servers),
        )

    def _history_strategy(self) -> str:
        """Empty where there is none."""
        value = self._values.get("history_strategy") or ""
        if value and value not in HistoryStrategy.values:
            raise BadFrame(f"'history_strategy' is one of {', '.join(HistoryStrategy.values)}.")
        return str(value)

    def model(self) -> str | None:
        return None if self._values.get("model") is None else self.text("model")

    def list(self, name: str) -> tuple[Any, ...]:
        value = self._values.get(name) or []
        if not isinstance(value, list):
            raise BadFrame(f"'{name}' has to be a list.")
        return tuple(value)

    def models(self, name: str) -> tuple[str, ...]:
        names = self.list(name)
        if not all(isinstance(one, str) for one in names):
            raise BadFrame(f"'{name}' has to be a list of models.")
        if len(names) > MAX_BESIDE:
            raise BadFrame(f"At most {MAX_BESIDE + 1} models answer side by side.")
        return names

    def picked(self) -> Picked:
        """Collections and documents to answer from."""
        value = self._values.get("sources") or {}
        if not isinstance(value, dict):
            raise BadFrame("'sources' has to be an object.")
        fields = _Fields(value)
        return Picked(fields._ids("collections"), fields._ids("documents"))

    def _ids(self, name: str) -> tuple[UUID, ...]:
        ids = self.list(name)
        if len(ids) > MAX_PICKED:
            raise BadFrame(f"'{name}' has at most {MAX_PICKED} entries.")
        return tuple(as_uuid(id_, name.removesuffix("s")) for id_ in ids)

    def passages(self, name: str) -> tuple[int, ...]:
        ids = self.list(name)
        is_fine = all(type(id_) is int and 0 < id_ < 2**63 for id_ in ids)
        if not is_fine or len(ids) > MAX_WITHOUT:
            raise BadFrame(f"'{name}' has to be a list of at most {MAX_WITHOUT} passages.")
        return ids

    def wish(self) -> Wish | None:
        match self._values.get("wish"):
            case None | "shorter" | "longer" as wish:
                return wish
        raise BadFrame("'wish' is 'shorter' or 'longer'.")

    def flag(self, name: str) -> bool:
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise BadFrame(f"'{name}' is true or false.")
        return value

    def client_id(self) -> str:
        return checked_client_id(self.text("client_id"))

    def count(self, name: str) -> int:
        value = self._values.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
            raise BadFrame(f"'{name}' has to be a whole number from 0 on.")
        return value

    def id(self, name: str) -> UUID:
        return as_uuid(self.text(name), name)

    def optional_id(self, name: str) -> UUID | None:
        return None if self._values.get(name) is None else self.id(name)
