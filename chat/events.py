"""The whole vocabulary of a running answer.

`answer()` yields these; `runs.py` numbers the `LogEvent`s (seq 1, 2, 3 …) and keeps them; the
socket and the REST API frame them. A `Phase` is a status for the eye: it is never numbered or kept.
A `Span` goes into the trace of the answer, and to no follower.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from chat.spans import Span
from inference import PromptImage, SamplingParams, TokenLogprob

PartKind = Literal["text", "reasoning"]
PhaseKind = Literal[
    "searching", "loading", "queued", "asking", "prefill", "decode", "approval", "tool"
]


@dataclass(frozen=True, slots=True)
class Phase:
    """What is happening now. Only the fields of its kind are set.

    searching: in documents; loading: `progress` 0–1 and `detail`; queued: `position` (from 1),
    `wait_s` (None: unknown); asking: `detail`, the other server that runs the model, and `total`, about
    how many tokens it is to read, all of them `done`; prefill: `done`, `total`, `cached` in tokens;
    decode: `tokens`, `tokens_per_s`, both 0 where another server counts them; approval: `detail` is the
    id of the call that waits for the user's word; tool: `detail`.
    """

    phase: PhaseKind
    position: int = 0
    wait_s: float | None = None
    done: int = 0
    total: int = 0
    cached: int = 0
    tokens: int = 0
    tokens_per_s: float = 0.0
    progress: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """An engine turn begins: the prompt is built and the seed drawn, so it can be resumed.

    An answer that calls tools has several turns, counted from 0. `prompt_ids`, `params` and `images`, as
    the engine gets them but without the images' data, are kept in the turn's row, not in the event log.
    """

    model: str
    revision: str
    seed: int
    turn: int = 0
    prompt_ids: tuple[int, ...] = ()
    params: SamplingParams | None = None
    images: tuple[PromptImage, ...] = ()
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in documents for the question, before the model is asked.

    `query` is what was looked for; `excerpts` are those that the model is shown (excerpts.Excerpt as
    JSON: places, no text). `is_whole`: all of the documents. `candidates` are all that were found, and
    why each is not shown; readers get them by asking (docs/api.md). Of the documents that were picked
    by name, `num_waiting` have not been read yet, and `num_failed` could not be.
    """

    query: str
    excerpts: tuple[dict[str, Any], ...] = ()
    is_whole: bool = False
    candidates: tuple[dict[str, Any], ...] = ()
    num_waiting: int = 0
    num_failed: int = 0
    kind: Literal["found"] = "found"

    @classmethod
    def from_kept(cls, kept: dict[str, Any]) -> "Found":
        return cls(
            query=kept["query"],
            excerpts=tuple(kept["excerpts"]),
            is_whole=kept["is_whole"],
            num_waiting=kept.get("num_waiting", 0),
            num_failed=kept.get("num_failed", 0),
        )

    def kept(self) -> dict[str, Any]:
        """As it stays with the answer."""
        nums = {"num_waiting": self.num_waiting, "num_failed": self.num_failed}
        return {
            "query": self.query,
            "excerpts": list(self.excerpts),
            "is_whole": self.is_whole,
            **{name: num for name, num in nums.items() if num},
        }

    @property
    def versions(self) -> frozenset[str]:
        """Of documents, whose text is in the prompt."""
        return frozenset(one["version"] for one in self.excerpts)


@dataclass(frozen=True, slots=True)
class FromCache:
    """The answer was given before, to this question or one that means the same: `similarity` is 1 for
    the very question. `question` as it was put, if that was the same person. No model is asked."""

    asked_at: str
    question: str
    similarity: float = 1.0
    kind: Literal["from_cache"] = "from_cache"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The conversation is too long for the model, which is shown what begins at the message `before`.

    `num_messages` older ones are left out; `summary` (an id) stands in for them, if there is one.
    `stopped` are questions that are left out with their answers wherever they stand, since a policy
    stops them by now. Comes again in later answers of the model, and in the same one when more has to
    go.
    """

    before: str
    num_messages: int
    summary: str | None = None
    stopped: tuple[str, ...] = ()
    kind: Literal["left_out"] = "left_out"


@dataclass(frozen=True, slots=True)
class Delta:
    """New text of one part, beginning `offset` characters into all the text of that part kind.

    `ids` are the tokens behind it. The text may be empty while markup of a tool call is written.
    `logprobs` are theirs, for a caller who asked; the durable log keeps none.
    """

    text: str
    offset: int
    part: PartKind = "text"
    ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    kind: Literal["delta"] = "delta"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `arguments` is a JSON object as text, as the model wrote it."""

    id: str
    name: str
    arguments: str
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the tool said, for the call `id`."""

    id: str
    content: str
    is_error: bool = False
    took_ms: float = 0.0
    kind: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class Searched:
    """What the model's own search, the call `id`, has brought (document_tool.py): what was looked for,
    and by their numbers the passages that were read, as programs are told of them. It is in no log."""

    id: str
    query: str
    results: dict[int, dict[str, Any]]
    kind: Literal["searched"] = "searched"


@dataclass(frozen=True, slots=True)
class Resumed:
    """The process that wrote this answer died; another one goes on from here."""

    kind: Literal["resumed"] = "resumed"


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Token counts over all engine turns of the answer."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RunTimings:
    """Where the time of the answer went, in milliseconds; `ttft_ms` is to the first text,
    `thinking_ms` what its reasoning took to write, `stop_ms` from a stop to the engine's word that it
    computes no more of it. `engine_ms` is what it had of our engine (inference.Timings); of one that
    another process took up, since then."""

    queued_ms: float = 0.0
    prefill_ms: float = 0.0
    ttft_ms: float = 0.0
    thinking_ms: float = 0.0
    decode_ms: float = 0.0
    tools_ms: float = 0.0
    total_ms: float = 0.0
    stop_ms: float = 0.0
    engine_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete answer. `reason` is OpenAI's finish_reason; `stop` the stop string that ended it.

    With "content_filter" a policy ended it, which is what programs are told where people are told
    Refused; or the filter of the server that runs the model.
    """

    reason: Literal["stop", "length", "tool_calls", "content_filter"]
    usage: RunUsage = field(default_factory=RunUsage)
    timings: RunTimings = field(default_factory=RunTimings)
    stop: str | None = None
    kind: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The reader pressed stop; the text ends after `chars` characters, where the reader saw it end."""

    chars: int
    usage: RunUsage = field(default_factory=RunUsage)
    timings: RunTimings = field(default_factory=RunTimings)
    kind: Literal["stopped"] = "stopped"


@dataclass(frozen=True, slots=True)
class Refused:
    """Policy ended the answer; `message` is for people.

    `stage` is what was judged: the input, or the output, of which `removes` takes back what was shown.
    `decision` is the id that an appeal is about.
    """

    code: str
    message: str
    stage: str = "input"
    decision: str = ""
    removes: bool = False
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer could not be completed; what was written so far is kept. By `trace_id` those who run
    the site find it in the logs."""

    code: str
    message: str
    retry_after_s: float | None = None
    param: str | None = None
    trace_id: str | None = None
    kind: Literal["failed"] = "failed"


LogEvent = (
    Started
    | Found
    | FromCache
    | LeftOut
    | Delta
    | ToolCall
    | ToolResult
    | Resumed
    | Finished
    | Stopped
    | Refused
    | Failed
)
Event = LogEvent | Phase | Span | Searched
TerminalEvent = Finished | Stopped | Refused | Failed
TERMINAL = (Finished, Stopped, Refused, Failed)

_CLASSES: dict[str, type[LogEvent]] = {
    "started": Started,
    "found": Found,
    "from_cache": FromCache,
    "left_out": LeftOut,
    "delta": Delta,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "resumed": Resumed,
    "finished": Finished,
    "stopped": Stopped,
    "refused": Refused,
    "failed": Failed,
}
_NESTED = {"usage": RunUsage, "timings": RunTimings}
_NOT_LOGGED = ("prompt_ids", "params", "images", "logprobs")
_SERVER_ONLY = (*_NOT_LOGGED, "ids", "candidates")


def to_payload(event: LogEvent) -> dict[str, Any]:
    """The event as JSON for the durable log: with token ids, without the prompt's."""
    return _shallow(event, leave_out=_NOT_LOGGED)


def from_payload(payload: dict[str, Any]) -> LogEvent:
    """The inverse of `to_payload`. Raises KeyError for an unknown kind."""
    fields = dict(payload)
    cls = _CLASSES[fields["kind"]]
    for name, nested in _NESTED.items():
        if name in fields:
            fields[name] = nested(**fields[name])
    for name in ("ids", "excerpts", "candidates", "stopped"):
        if name in fields:
            fields[name] = tuple(fields[name])
    return cls(**fields)


def for_reader(event: LogEvent) -> dict[str, Any]:
    """The event as readers get it: without token ids."""
    payload = _shallow(event, leave_out=_SERVER_ONLY)
    if isinstance(event, Found):
        payload["excerpts"] = places_of(event.excerpts)
    return payload


def places_of(excerpts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Excerpts as readers get them, without the headings above: these are words of the document, which
    are had with its text, as long as that may be read (document_glass.py)."""
    return [{**one, "context": ""} for one in excerpts]


def _shallow(event: LogEvent, leave_out: tuple[str, ...]) -> dict[str, Any]:
    """dataclasses.asdict copies deeply, which costs more than all else that a token goes through."""
    payload = {name: getattr(event, name) for name in event.__slots__ if name not in leave_out}
    for name in _NESTED.keys() & payload.keys():
        payload[name] = asdict(payload[name])
    return payload
