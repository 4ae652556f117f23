"""The parameters that a chat keeps for its answers, as they come from people and from files."""

from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field, ValidationError

from chat.errors import BadFrame


class Parameters(Schema):
    """What is set of chat.asking.Sampling; what is left out is the model's own. One that is not known
    is a mistake, never ignored."""

    model_config = ConfigDict(extra="forbid")

    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, le=1000)
    min_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    seed: int | None = Field(None, ge=0, lt=2**63)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)

    def as_values(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


def checked_parameters(value: object) -> dict[str, Any]:
    """Of a frame. Raises BadFrame."""
    try:
        return Parameters.model_validate(value).as_values()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(("parameters", *map(str, first["loc"])))
        raise BadFrame(f"'{place}': {first['msg']}") from None
