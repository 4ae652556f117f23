"""Sound that becomes text, and text that becomes sound: what is asked, and what is heard of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from inference.encode_messages import Caller
from inference.errors import RequestError
from inference.messages import Usage

Task = Literal["transcribe", "translate"]
SpeechForm = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
SECOND_TOKENS = 50
"""A second of sound counts as so many tokens: the positions that Whisper's encoder has for it."""


class BadSound(RequestError):
    """A file that cannot be heard: broken, cut, empty."""

    code = "invalid_audio"
    param = "file"


class UnknownSound(BadSound):
    """A format that nothing here reads."""

    code = "unsupported_audio"


class SoundTooLong(BadSound):
    """More of it than is heard at once."""

    code = "audio_too_long"


@dataclass(frozen=True, slots=True)
class Sound:
    """A file on this machine, with the name that its owner gave it."""

    path: Path
    name: str
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """Sound to be written down, in its own language or in English (`translate`).

    `language` is its ISO-639-1 code; "": the model finds out. `prompt` is text in the style that is
    wanted, or what was said before. Without `has_segments` the text alone will do; `has_words` asks for
    the times of words.
    """

    model: str
    sound: Sound
    task: Task = "transcribe"
    language: str = ""
    prompt: str = ""
    temperature: float = 0.0
    has_segments: bool = False
    has_words: bool = False
    caller: Caller = field(default_factory=Caller)


@dataclass(frozen=True, slots=True)
class SoundSegment:
    """A piece of a transcript, by times from the sound's beginning. The figures are Whisper's own, 0
    where nobody has told them: `seek_s` is where its window began, `no_speech` a probability."""

    text: str
    start_s: float
    end_s: float
    token_ids: tuple[int, ...] = ()
    seek_s: float = 0.0
    temperature: float = 0.0
    avg_logprob: float = 0.0
    compression_ratio: float = 0.0
    no_speech: float = 0.0


@dataclass(frozen=True, slots=True)
class SoundWord:
    """By times from the sound's beginning."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """`language` is as the model calls it, "" where it has not told; `duration_s` is the sound's."""

    text: str
    language: str = ""
    duration_s: float = 0.0
    segments: tuple[SoundSegment, ...] = ()
    words: tuple[SoundWord, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """Text to be spoken. `voice` is the name of one that the model has, "" the usual one; `instructions`
    say how it is to speak, to models that can be told."""

    model: str
    text: str
    voice: str = ""
    form: SpeechForm = "mp3"
    speed: float = 1.0
    instructions: str = ""
