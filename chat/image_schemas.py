"""The bodies of /v1/images: JSON, and a form with pictures.

Source: OpenAI's published API description, version 2.3.0.
"""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from chat.openai_schemas import Strict
from inference import PictureRequest

MAX_PROMPT_CHARS = 32_000
MAX_PICTURES = 10  # made at once; with the prompt's, OpenAI's own bounds
_OFF = (None, False, 0, "false", "False", "0")
Size = Annotated[str, Field(pattern=r"^(auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$")]


def _here(value: Any) -> Any:
    if value == "url":
        raise ValueError(
            "pictures are kept nowhere here and have no address; they come as b64_json"
        )
    return value


def _whole(value: Any) -> None:
    if value not in _OFF:
        raise ValueError("a picture comes whole, and not as a stream")


class PromptIn(Strict):
    """What both bodies have. `user` is nothing that another server is told."""

    prompt: Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARS)]
    model: Annotated[str, Field(min_length=1)] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_PICTURES)] | None = None
    size: Size | None = None
    quality: Literal["standard", "hd", "low", "medium", "high", "auto"] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    output_compression: Annotated[int, Field(ge=0, le=100)] | None = None
    response_format: Annotated[Literal["b64_json"] | None, BeforeValidator(_here)] = None
    stream: Annotated[None, BeforeValidator(_whole)] = None
    partial_images: Annotated[None, BeforeValidator(_whole)] = None
    user: str | None = None

    @field_validator("prompt")
    @classmethod
    def _has_words(cls, prompt: str) -> str:
        if not prompt.strip():
            raise ValueError("there is nothing to draw")
        return prompt

    def request(self, model: str) -> PictureRequest:
        """Of `model`, which is the one that is named where one is."""
        return PictureRequest(
            model=model,
            prompt=self.prompt,
            num_pictures=self.n or 1,
            size=self.size or "",
            quality=self.quality or "",
            background=self.background or "",
            form=self.output_format or "",
            compression=self.output_compression,
        )


class ImageIn(PromptIn):
    style: Literal["vivid", "natural"] | None = None
    moderation: Literal["low", "auto"] | None = None

    def request(self, model: str) -> PictureRequest:
        asked = super().request(model)
        return replace(asked, style=self.style or "", moderation=self.moderation or "")


class ImageEditIn(PromptIn):
    input_fidelity: Literal["high", "low"] | None = None

    def request(self, model: str) -> PictureRequest:
        return replace(super().request(model), fidelity=self.input_fidelity or "")
