"""The body of /v1/chat/completions. Source: OpenAI's published API description, version 2.3.0."""

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, model_validator

Text = Annotated[str, Field(max_length=1_000_000)]


class TextPart(Schema):
    type: Literal["text"]
    text: Text


class FunctionCall(Schema):
    name: str
    arguments: str


class ToolCallIn(Schema):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessageIn(Schema):
    """One message. Content is a text or a list of text parts."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[TextPart] | None = None
    tool_calls: list[ToolCallIn] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "ChatMessageIn":
        if self.role == "tool" and not self.tool_call_id:
            raise ValueError("a tool message needs tool_call_id")
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise ValueError("content is missing")
        return self

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(Schema):
    include_usage: bool = False


class FunctionIn(Schema):
    model_config = ConfigDict(extra="allow")
    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")


class ToolIn(Schema):
    type: Literal["function"]
    function: FunctionIn


class ResponseFormat(Schema):
    type: str = "text"


class ChatCompletionIn(Schema):
    """What is understood is listed here; a field that would change the answer and is not yet
    understood is refused, never ignored."""

    model_config = ConfigDict(extra="forbid")

    model: str
    messages: list[ChatMessageIn] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    top_k: int | None = Field(None, ge=0, le=1_000_000)
    min_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    stop: str | list[str] | None = None
    tools: list[ToolIn] | None = Field(None, max_length=128)
    tool_choice: Literal["auto", "none"] | None = None
    user: str | None = None
    # Understood only as far as they change nothing:
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None
    presence_penalty: float | None = Field(None, ge=0, le=0)
    frequency_penalty: float | None = Field(None, ge=0, le=0)
    logit_bias: dict[str, float] | None = Field(None, max_length=0)
    response_format: ResponseFormat | None = None
    parallel_tool_calls: Literal[True] | None = None
    modalities: list[Literal["text"]] | None = Field(None, max_length=1)
    # For OpenAI's own bookkeeping; no answer depends on them:
    store: bool | None = None
    metadata: dict[str, str] | None = Field(None, max_length=16)
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @model_validator(mode="after")
    def _is_supported(self) -> "ChatCompletionIn":
        if self.response_format is not None and self.response_format.type != "text":
            raise ValueError("response_format: only text answers are supported")
        if not 0 <= len(self.stop_strings) <= 4 or any(
            not s or len(s) > 500 for s in self.stop_strings
        ):
            raise ValueError("stop: at most 4 strings of 1 to 500 characters")
        return self

    @property
    def stop_strings(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    def tool_schemas(self) -> tuple[dict[str, Any], ...]:
        if self.tool_choice == "none":
            return ()
        return tuple(tool.model_dump() for tool in self.tools or [])
