"""/v1/tokenize: what a model reads of a text or of a chat. Ours; vLLM has a similar one."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import Field, model_validator

from chat.drawn_images import drawn
from chat.engine import engine
from chat.image_urls import with_inline
from chat.off_loop import off_loop_for_counting
from chat.openai_asking import refuse_images_for_the_blind
from chat.openai_bodies import chat_message
from chat.openai_schemas import ChatMessageIn, Strict, Text, ToolIn, as_schemas
from chat.rights import Rights
from inference import ChatMessage, ChatTokenizer, InvalidParameter


class TokenizeIn(Strict):
    """A text as it is, or messages (with tools) as the model's chat template writes them."""

    model: str
    text: Text | None = None
    messages: list[ChatMessageIn] | None = Field(None, min_length=1, max_length=10_000)
    tools: list[ToolIn] | None = Field(None, max_length=128)

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.text is None) == (self.messages is None):
            raise ValueError("text: give a text or messages, one of both")
        if self.tools and self.messages is None:
            raise ValueError("tools: go with messages")
        return self


async def tokenize(rights: Rights, data: TokenizeIn) -> dict[str, Any]:
    """Raises EngineError."""
    tokenizer, user = await _tokenizer(rights, data.model), rights.user.pk
    if data.messages is None:
        tokens = await off_loop_for_counting(user, tokenizer.encode, data.text or "")
    else:
        messages = await _as_asked(rights, data.model, data.messages)
        tools = as_schemas(data.tools or [])
        tokens = await off_loop_for_counting(user, _encode, tokenizer, messages, tools)
    return {"tokens": tokens, "count": len(tokens)}


async def count_chat(
    rights: Rights,
    model: str,
    messages: list[ChatMessageIn],
    tool_schemas: Sequence[dict[str, Any]],
) -> int:
    """How many tokens a model reads of a chat. Raises EngineError."""
    tokenizer = await _tokenizer(rights, model)
    asked = await _as_asked(rights, model, messages)
    counting = off_loop_for_counting(rights.user.pk, _encode, tokenizer, asked, tool_schemas)
    return len(await counting)


async def _as_asked(rights: Rights, model: str, messages: list[ChatMessageIn]) -> list[ChatMessage]:
    """As a request for an answer has them. Raises InvalidParameter."""
    refuse_images_for_the_blind(model, messages)
    return await drawn(await with_inline(rights.user.pk, [*map(chat_message, messages)]))


async def _tokenizer(rights: Rights, model: str) -> ChatTokenizer:
    rights.require_model(model)
    if engine().is_upstream(model):
        raise InvalidParameter("model", "it runs on another server, which keeps its tokenizer")
    return await engine().tokenizer(model)


def _encode(
    tokenizer: ChatTokenizer,
    messages: list[ChatMessage],
    tool_schemas: Sequence[dict[str, Any]],
) -> list[int]:
    return list(tokenizer.encode_chat(messages, tools=tool_schemas))
