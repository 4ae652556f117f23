"""/v1/embeddings: texts or token ids in, one vector for each out. Source: OpenAI's API description."""

import base64
import re
from array import array
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from pydantic import Field, StrictInt, StrictStr, field_validator

from chat.api_errors import ApiError
from chat.bills import billed
from chat.engine import engine
from chat.events import RunUsage
from chat.off_loop import off_loop
from chat.openai_schemas import (
    A_LIST,
    A_LIST_OF_IDS,
    A_TEXT,
    BY_INPUT_SHAPE,
    LISTS_OF_IDS,
    Strict,
)
from chat.rights import Rights
from chat.wire import dumps
from inference import Caller, Embeddings, InvalidParameter, TextTooLong

NUM_MARKS = 64  # that a model may put around a text: its own, and a prompt in front
MAX_INPUTS = 2048  # OpenAI's own bound, of texts and of the tokens of one

_HALF = re.compile("[\ud800-\udfff]")

Many = Field(min_length=1, max_length=MAX_INPUTS)
Ids = Annotated[list[StrictInt], Field(min_length=1)]


class EmbeddingsIn(Strict):
    """`prompt_name` is ours: one of the model's own prompts, such as "query"."""

    model: str
    input: Annotated[
        Annotated[StrictStr, A_TEXT]
        | Annotated[list[StrictStr], Many, A_LIST]
        | Annotated[list[StrictInt], Many, A_LIST_OF_IDS]
        | Annotated[list[Ids], Many, LISTS_OF_IDS],
        BY_INPUT_SHAPE,
    ]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(None, ge=1)
    user: str | None = None
    prompt_name: str | None = Field(None, max_length=64)

    @field_validator("input")
    @classmethod
    def _holds_text(cls, value: Any) -> Any:
        if value == "" or (isinstance(value, list) and "" in value):
            raise ValueError("an empty text has no embedding")
        texts = [value] if isinstance(value, str) else value
        # The tokenizer would read half a character, or all of the text, as nothing.
        if any(isinstance(text, str) and _HALF.search(text) for text in texts):
            raise ValueError("half a character (a lone surrogate) has no embedding")
        return value

    @property
    def texts(self) -> list[str | list[int]]:
        """One entry per vector: lists of numbers are one text of token ids."""
        value: Any = self.input
        is_one = isinstance(value, str) or isinstance(value[0], int)
        return [value] if is_one else value


async def embed(rights: Rights, data: EmbeddingsIn) -> HttpResponse:
    """Raises EngineError or ApiError; a text that is wrong is one of `input`."""
    user = rights.user
    # A token has at least one character, or is one of a list.
    most_tokens = [sum(len(text) + NUM_MARKS for text in data.texts)]
    try:
        async with billed(rights, data.model, most_tokens=most_tokens) as bill:
            found = await engine().embed(
                data.model,
                data.texts,
                prompt_name=data.prompt_name,
                dimensions=data.dimensions,
                caller=Caller(str(user.pk), user.tier.weight, rights.priority),
            )
            bill.usage = RunUsage(prompt_tokens=found.num_tokens)
    except TextTooLong as error:
        raise ApiError(400, error.code, str(error), "input") from None
    except InvalidParameter as error:
        if str(error.param).startswith("texts"):
            raise ApiError(400, error.code, str(error), "input") from None
        raise
    # In a thread: two thousand vectors are megabytes of numbers.
    body = await off_loop(_body, data, found)
    return HttpResponse(body, content_type="application/json")


def _body(data: EmbeddingsIn, found: Embeddings) -> str:
    """Put together vector by vector: one call of the encoder for all would stop every thread."""
    write = _base64 if data.encoding_format == "base64" else _floats
    items = (
        dumps({"object": "embedding", "index": index, "embedding": write(vector)})
        for index, vector in enumerate(found.vectors)
    )
    usage = {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens}
    head = dumps({"object": "list", "model": data.model, "usage": usage})
    return f'{head[:-1]},"data":[{",".join(items)}]}}'


def _base64(vector: "array[float]") -> str:
    """Little-endian float32, which is what every machine that we run on keeps them as."""
    return base64.b64encode(vector.tobytes()).decode()


def _floats(vector: "array[float]") -> list[float]:
    return vector.tolist()
