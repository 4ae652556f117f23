"""One turn of a model: it reads the conversation, and what it writes becomes events."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from typing import Any

from chat.answer_state import AnswerState
from chat.asking import Control
from chat.events import Delta, Event, LeftOut, LogEvent, PartKind, ToolCall
from chat.prompt_plan import Limits
from chat.storable import storable
from chat.untagged import untagged_value
from inference import Call, Reasoning, Segment, Text, TokenLogprob, prompt_room
from inference import Finished as EngineFinished


class Turn(ABC):
    """`end` is set when the model finished or was stopped; None after events() means it failed.

    `logged` are the turn's events, those before an interruption included; `calls` the tool calls
    among them.
    """

    def __init__(self, state: AnswerState, control: Control, earlier: list[LogEvent]) -> None:
        self.state = state
        self.control = control
        self.end: EngineFinished | None = None
        self.calls: list[ToolCall] = []
        self.logged = list(earlier)

    @abstractmethod
    def events(self) -> AsyncGenerator[Event, None]:
        """Ask the model, and yield what it does. Raises EngineError."""

    def limits(self, context_tokens: int) -> Limits:
        """What the prompt may fill of a model's context, where the user's tier allows all of it."""
        request = self.state.request
        context_tokens = min(context_tokens, request.max_context_tokens or context_tokens)
        return Limits(context_tokens, prompt_room(context_tokens, request.sampling.max_tokens))

    def newly_left_out(self) -> LeftOut | None:
        """What the model is not shown, where this answer has not said so yet."""
        left_out = self.state.plan.left_out if self.state.plan else None
        if left_out is None or left_out == self.state.told_left_out:
            return None
        self.state.told_left_out = left_out
        self.log(left_out)
        return left_out

    @cached_property
    def tool_schemas(self) -> list[dict[str, Any]]:
        """The tools that the model is shown in this turn, as it reads them."""
        if self.state.is_last_turn:
            return []
        request = self.state.request
        shown = [tool.schema() for tool in request.tools] + list(request.tool_schemas)
        return [untagged_value(schema) for schema in shown]

    def show(
        self,
        segments: Sequence[Segment],
        ids: tuple[int, ...] = (),
        logprobs: tuple[TokenLogprob, ...] = (),
    ) -> list[LogEvent]:
        """Segments as events. The first delta carries the ids, if need be with an empty text."""
        events: list[LogEvent] = []
        if ids and not (segments and isinstance(segments[0], Text | Reasoning)):
            segments = [Text(""), *segments]
        for segment in segments:
            match segment:
                case Text(text):
                    events.append(self._delta("text", text, ids, logprobs))
                case Reasoning(text):
                    events.append(self._delta("reasoning", text, ids, logprobs))
                case Call(name, arguments):
                    self.state.end_thought()
                    call_id = f"call_{secrets.token_hex(8)}"
                    call = ToolCall(call_id, storable(name), storable(arguments))
                    self.calls.append(call)
                    events.append(self.log(call))
            ids, logprobs = (), ()
        return events

    def _delta(
        self,
        part: PartKind,
        text: str,
        ids: tuple[int, ...],
        logprobs: tuple[TokenLogprob, ...],
    ) -> LogEvent:
        text = storable(text)
        delta = Delta(text, self.state.num_chars[part], part, ids, logprobs)
        self.state.num_chars[part] += len(text)
        if text:
            self.state.wrote(part)
        return self.log(delta)

    def log(self, event: LogEvent) -> LogEvent:
        self.logged.append(event)
        return event
