"""The body of /v1/messages. Source: Anthropic's API description (version header 2023-06-01)."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, field_validator, model_validator

from chat.image_urls import checked_url
from chat.openai_schemas import (
    A_LIST,
    A_TEXT,
    BY_SHAPE,
    AnyObject,
    Anything,
    FunctionIn,
    Strict,
    Text,
    by_kind,
    refused,
)

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class Block(Strict):
    """A part of a message. What is cached is ours to decide."""

    cache_control: dict[str, Any] | None = None


class TextBlock(Block):
    type: Literal["text"]
    text: Text
    citations: Anything | None = None


class ImageSource(Strict):
    """What an image is, or where."""

    type: Literal["base64", "url"]
    media_type: str | None = None
    data: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _is_image(self) -> Self:
        self.address  # noqa: B018  raises ValueError
        return self

    @property
    def address(self) -> str:
        if self.type == "url":
            return checked_url(self.url or "")
        return checked_url(f"data:;base64,{self.data or ''}")


class ImageBlock(Block):
    """Of a user's message, for models that see."""

    type: Literal["image"]
    source: ImageSource


_NO_PICTURES = "no model here reads documents, nor what Anthropic's own tools tell"
Texts = Annotated[Annotated[Text, A_TEXT] | Annotated[list[TextBlock], A_LIST], BY_SHAPE]


class ToolUseBlock(Block):
    type: Literal["tool_use"]
    id: str = Field(min_length=1, max_length=128)
    name: Name
    input: AnyObject
    # What Anthropic's blocks have and ours do not: a client that dumps its types sends it back empty.
    caller: None = None
    toolset_name: None = None


class ToolResultBlock(Block):
    type: Literal["tool_result"]
    tool_use_id: str
    content: Texts = ""
    is_error: bool | None = None


class ThinkingBlock(Strict):
    """Comes back with the answer that it belongs to; models are not shown their old thoughts again."""

    type: Literal["thinking"]
    thinking: Text
    signature: str = ""


class RedactedThinkingBlock(Strict):
    type: Literal["redacted_thinking"]
    data: str


Blocks = list[
    Annotated[
        Annotated[TextBlock, Tag("a text")]
        | Annotated[ImageBlock, Tag("a image")]
        | Annotated[ToolUseBlock, Tag("a tool_use")]
        | Annotated[ToolResultBlock, Tag("a tool_result")]
        | Annotated[ThinkingBlock, Tag("a thinking")]
        | Annotated[RedactedThinkingBlock, Tag("a redacted_thinking")],
        by_kind(_NO_PICTURES),
    ]
]


class MessageIn(Strict):
    role: Literal["user", "assistant"]
    content: Annotated[Annotated[Text, A_TEXT] | Annotated[Blocks, A_LIST], BY_SHAPE]

    @property
    def blocks(self) -> list[Any]:
        if isinstance(self.content, str):
            return [TextBlock(type="text", text=self.content)]
        return self.content

    @model_validator(mode="after")
    def _has_images_of_users(self) -> Self:
        if self.role != "user" and any(isinstance(one, ImageBlock) for one in self.blocks):
            raise ValueError("images are a user's")
        return self


class AnthropicToolIn(Block):
    type: Literal["custom"] | None = None
    name: Name
    description: Text | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None
    eager_input_streaming: bool | None = None  # a call is told when it is whole

    @property
    def function(self) -> FunctionIn:
        return FunctionIn(
            name=self.name,
            description=self.description,
            parameters=self.input_schema,
            strict=self.strict,
        )

    @model_validator(mode="after")
    def _is_sayable(self) -> Self:
        self.function  # noqa: B018  raises ValueError for a schema that cannot be written
        return self


class ToolChoiceIn(Strict):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.type == "tool") != (self.name is not None):
            raise ValueError("name: goes with the type tool")
        return self


class ThinkingIn(Strict):
    """How much a model thinks is its own, which is what `adaptive` asks for."""

    type: Literal["disabled", "adaptive"]


class OutputFormatIn(Strict):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfigIn(Strict):
    """`high` is what it is where nobody says anything; other efforts are for models on other servers."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormatIn | None = None


class MetadataIn(Strict):
    user_id: str | None = None


class AskedIn(Strict):
    """What both asking and counting take."""

    model: str
    messages: list[MessageIn] = Field(min_length=1, max_length=10_000)
    system: Texts | None = None
    tools: list[AnthropicToolIn] | None = Field(None, max_length=128)
    tool_choice: ToolChoiceIn | None = None
    thinking: ThinkingIn | None = None
    output_config: OutputConfigIn | None = None
    cache_control: dict[str, Any] | None = None  # as of a block
    # Understood only as far as they change nothing:
    mcp_servers: list[Any] | None = Field(None, max_length=0)
    container: Annotated[None, refused("there are no containers here")] = None
    context_management: Annotated[None, refused("nothing is left out of messages here")] = None
    inference_geo: Annotated[None, refused("where models run is not told here")] = None

    @field_validator("messages")
    @classmethod
    def _is_to_be_answered(cls, messages: list[MessageIn]) -> list[MessageIn]:
        if messages[-1].role != "user":
            raise ValueError("the last one has to be the user's: answers are not begun for a model")
        used: set[str] = set()
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolUseBlock):
                    used.add(block.id)
                if isinstance(block, ToolResultBlock) and block.tool_use_id not in used:
                    raise ValueError(f"no tool_use has the id '{block.tool_use_id}'")
        return messages

    @model_validator(mode="after")
    def _can_choose(self) -> Self:
        names = [tool.name for tool in self.tools or []]
        choice = self.tool_choice
        if len(set(names)) < len(names):
            raise ValueError("tools: two of them have the same name")
        if choice is not None and choice.type in ("any", "tool") and not names:
            raise ValueError("tool_choice: there are no tools to choose from")
        if choice is not None and choice.name is not None and choice.name not in names:
            raise ValueError("tool_choice: no tool has this name")
        return self

    @property
    def effort(self) -> str | None:
        effort = self.output_config.effort if self.output_config else None
        return None if effort == "high" else effort

    @property
    def system_text(self) -> str:
        if isinstance(self.system, list):
            return "\n\n".join(block.text for block in self.system)
        return self.system or ""


class MessagesIn(AskedIn):
    """The whole body."""

    max_tokens: int = Field(ge=1, le=1_000_000)
    stream: bool | None = None
    stop_sequences: list[Annotated[str, Field(min_length=1, max_length=500)]] | None = Field(
        None, max_length=64
    )
    temperature: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    top_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    top_k: int | None = Field(None, ge=0, le=1_000_000)
    metadata: MetadataIn | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)  # ours
