"""The bodies of /v1/audio: forms with a file, and JSON.

Source: OpenAI's published API description, version 2.3.0.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from chat.openai_schemas import Strict, refused
from inference import SpeechForm

Format = Literal["json", "text", "srt", "verbose_json", "vtt"]
_ALONE = "no model here does that"
Language = Annotated[
    str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$"), AfterValidator(str.lower)
]
Nothing = Annotated[None, refused(_ALONE)]


class VoiceIn(Strict):
    """A voice of the caller's own, as OpenAI has them: its id is what the other server is told."""

    id: Annotated[str, Field(min_length=1, max_length=100)]


class SpeechIn(Strict):
    model: str
    input: Annotated[str, Field(min_length=1, max_length=4_096)]
    voice: Annotated[str, Field(min_length=1, max_length=100)] | VoiceIn | None = None
    response_format: SpeechForm = "mp3"
    speed: Annotated[float, Field(ge=0.25, le=4, allow_inf_nan=False)] = 1.0
    instructions: Annotated[str, Field(max_length=4_096)] = ""
    stream_format: Literal["audio"] = "audio"

    @field_validator("input")
    @classmethod
    def _has_words(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("there is nothing to say")
        return text

    @property
    def voice_name(self) -> str:
        return self.voice.id if isinstance(self.voice, VoiceIn) else self.voice or ""


class TranslationIn(Strict):
    model: str
    prompt: Annotated[str, Field(max_length=10_000)] = ""
    response_format: Format = "json"
    temperature: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0

    @property
    def has_segments(self) -> bool:
        """Whether the pieces are shown, with their times."""
        return self.response_format in ("verbose_json", "srt", "vtt")

    @property
    def has_words(self) -> bool:
        return False


class TranscriptionIn(TranslationIn):
    """A language may have its country behind it ("de-AT"), which changes nothing."""

    language: Language | None = None
    timestamp_granularities: list[Literal["word", "segment"]] = []
    chunking_strategy: Literal["auto"] | None = None  # long sound is cut in any case
    include: Annotated[list[Any], Field(max_length=0)] = []
    stream: Literal["false", "False", "0"] | None = None
    languages: Nothing = None
    keywords: Nothing = None
    known_speaker_names: Nothing = None
    known_speaker_references: Nothing = None

    @model_validator(mode="after")
    def _has_times(self) -> "TranscriptionIn":
        if self.timestamp_granularities and self.response_format != "verbose_json":
            raise ValueError("timestamp_granularities: only with the response_format verbose_json")
        return self

    @property
    def has_segments(self) -> bool:
        if self.response_format == "verbose_json" and self.timestamp_granularities:
            return "segment" in self.timestamp_granularities
        return super().has_segments

    @property
    def has_words(self) -> bool:
        return "word" in self.timestamp_granularities
