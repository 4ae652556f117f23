"""What crosses to a worker and back when sound becomes text; see `messages`."""

from dataclasses import dataclass, field

from inference.encode_messages import Caller
from inference.pickling import pickled_by_fields

RATE_HZ = 16_000
WINDOW_S = 30
WINDOW_SAMPLES = WINDOW_S * RATE_HZ
WINDOW_TOKENS = 1_500
"""The positions that Whisper's encoder has for a window, however much of it is silence."""


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class HearRequest:
    """One window of sound: up to WINDOW_SAMPLES of 16 bits (little-endian), at RATE_HZ.

    `language_id` is the token of a language; None: the model finds out, or knows one only. `task_id` is
    that of what is to be done, None for models that do one thing only. `prompt_ids` are read in front.
    `is_replay`: a worker had accepted it and died, so that no other one is too full for it.
    """

    request_id: str
    samples: bytes
    language_id: int | None = None
    task_id: int | None = None
    has_times: bool = False
    temperature: float = 0.0
    prompt_ids: tuple[int, ...] = ()
    caller: Caller = field(default_factory=Caller)
    is_replay: bool = False

    @property
    def num_tokens(self) -> int:
        return WINDOW_TOKENS

    @property
    def is_chore(self) -> bool:
        """Of the class that nobody waits for."""
        return self.caller.priority == "background"


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Heard:
    """The only answer to a HearRequest that went well: the tokens that the model has written, those of
    times among them, without what they begin and end with. `avg_logprob` is over them and the end."""

    ids: tuple[int, ...]
    language_id: int | None
    avg_logprob: float
    no_speech: float
