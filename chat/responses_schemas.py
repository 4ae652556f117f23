"""The body of /v1/responses. Source: OpenAI's published API description, version 2.3.0."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, Discriminator, Field, Tag, field_validator, model_validator

from chat.openai_schemas import (
    A_LIST,
    A_TEXT,
    BY_SHAPE,
    NO_FILES,
    NO_PICTURES,
    Anything,
    CachedPart,
    Detail,
    DrawingIn,
    Effort,
    FunctionIn,
    ImageAddress,
    Metadata,
    PromptCacheOptions,
    Strict,
    Text,
    Verbosity,
    by_kind,
    refused,
)
from chat.sources import MAX_PICKED
from chat.vector_store_schemas import Filters, RankingOptions

CallId = Annotated[str, Field(min_length=1, max_length=64)]
ItemId = Annotated[str, Field(max_length=128)]
Status = Literal["in_progress", "completed", "incomplete"]


class TextPartIn(CachedPart):
    """Of a message: what was asked, or what was answered and comes back as it was."""

    type: Literal["input_text", "output_text", "text"]
    text: Text
    annotations: Anything | None = None
    logprobs: Anything | None = None
    parsed: Any = None  # what the client's own parse() has read of the text, which says the same


class RefusalIn(Strict):
    type: Literal["refusal"]
    refusal: Text


class ImagePartIn(CachedPart):
    """Of a user's message, for models that see."""

    type: Literal["input_image"]
    image_url: ImageAddress | None = None
    detail: Detail | None = None
    file_id: str | None = None

    @model_validator(mode="after")
    def _is_itself(self) -> Self:
        if self.image_url is None or self.file_id is not None:
            raise ValueError("send the image itself, as image_url")
        return self


_Texts = (
    Annotated[TextPartIn, Tag("a input_text")]
    | Annotated[TextPartIn, Tag("a output_text")]
    | Annotated[TextPartIn, Tag("a text")]
    | Annotated[RefusalIn, Tag("a refusal")]
)
TextOnlyPart = Annotated[_Texts, by_kind(NO_PICTURES)]
Part = Annotated[_Texts | Annotated[ImagePartIn, Tag("a input_image")], by_kind(NO_FILES)]
TextContent = Annotated[Annotated[Text, A_TEXT] | Annotated[list[TextOnlyPart], A_LIST], BY_SHAPE]
Content = Annotated[Annotated[Text, A_TEXT] | Annotated[list[Part], A_LIST], BY_SHAPE]


def _text_of(content: str | Sequence[TextPartIn | RefusalIn | ImagePartIn]) -> str:
    return content if isinstance(content, str) else "".join(map(_text_of_part, content))


def _text_of_part(part: TextPartIn | RefusalIn | ImagePartIn) -> str:
    match part:
        case TextPartIn(text=text) | RefusalIn(refusal=text):
            return text
    return ""


def _chat_part(part: TextPartIn | RefusalIn | ImagePartIn) -> dict[str, Any]:
    if isinstance(part, ImagePartIn):
        image_url = {"url": part.image_url, "detail": part.detail}
        return {"type": "image_url", "image_url": image_url}
    return {"type": "text", "text": _text_of_part(part)}


class MessageItem(Strict):
    type: Literal["message"] | None = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content
    id: ItemId | None = None
    status: Status | None = None
    phase: str | None = None

    @model_validator(mode="after")
    def _has_images_of_users(self) -> Self:
        if self.image_urls and self.role != "user":
            raise ValueError("images are a user's")
        return self

    @property
    def text(self) -> str:
        return _text_of(self.content)

    @property
    def image_urls(self) -> list[str]:
        parts = [part for part in self.content if isinstance(part, ImagePartIn)]
        return [part.image_url for part in parts if part.image_url]

    def showing(self, inline: Mapping[str, str]) -> Self:
        """With other URLs of its images."""
        if isinstance(self.content, str):
            return self
        parts = [
            part.model_copy(update={"image_url": inline[part.image_url or ""]})
            if isinstance(part, ImagePartIn)
            else part
            for part in self.content
        ]
        return self.model_copy(update={"content": parts})

    @property
    def as_parts(self) -> list[dict[str, Any]]:
        """Its content in the shape of a chat completion."""
        parts = (
            [TextPartIn(type="text", text=self.content)]
            if isinstance(self.content, str)
            else self.content
        )
        return [_chat_part(part) for part in parts]


class CallItem(Strict):
    type: Literal["function_call"]
    call_id: CallId
    name: str = Field(max_length=128)
    arguments: Text
    id: ItemId | None = None
    status: Status | None = None
    # What OpenAI's items have and ours do not: a client that dumps its types sends it back empty.
    namespace: None = None
    caller: None = None
    async_: Literal[False] | None = Field(None, validation_alias=AliasChoices("async", "async_"))
    created_by: str | None = None
    parsed_arguments: Any = None  # as `parsed` of a text


class CallOutputItem(Strict):
    type: Literal["function_call_output"]
    call_id: CallId
    output: TextContent
    id: ItemId | None = None
    status: Status | None = None
    name: None = None
    namespace: None = None
    caller: None = None
    created_by: str | None = None

    @property
    def text(self) -> str:
        return _text_of(self.output)


class ReasoningItem(Strict):
    """Comes back with the answer that it belongs to; models are not shown their old thoughts again."""

    type: Literal["reasoning"]
    id: ItemId | None = None
    summary: Anything = []
    content: Anything | None = None
    encrypted_content: str | None = None
    status: Status | None = None


class FileResultIn(Strict):
    file_id: str | None = None
    filename: str | None = Field(None, max_length=1024)
    text: Text | None = None
    score: float | None = None
    attributes: dict[str, Any] | None = None


class FileSearchItem(Strict):
    """Comes back with the answer that it belongs to. Models are shown again what it had found where the
    caller sends that; it is not kept here, for what documents say can be taken back."""

    type: Literal["file_search_call"]
    id: ItemId
    queries: list[Text] = Field(max_length=16)
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"] | None = None
    results: list[FileResultIn] | None = Field(None, max_length=1_000)


class ReferenceItem(Strict):
    """An item of a response that is kept, in place of which it stands."""

    type: Literal["item_reference"] | None = "item_reference"
    id: ItemId


def _kind(value: Any) -> str | None:
    if isinstance(value, dict):
        is_reference = "id" in value and "role" not in value
        kind = value.get("type")
        kind = ("item_reference" if is_reference else "message") if kind is None else kind
    else:
        kind = getattr(value, "type", None)
    return f"a {kind}" if isinstance(kind, str) else None


Item = Annotated[
    Annotated[MessageItem, Tag("a message")]
    | Annotated[CallItem, Tag("a function_call")]
    | Annotated[CallOutputItem, Tag("a function_call_output")]
    | Annotated[ReasoningItem, Tag("a reasoning")]
    | Annotated[FileSearchItem, Tag("a file_search_call")]
    | Annotated[ReferenceItem, Tag("a item_reference")],
    Discriminator(
        _kind,
        custom_error_type="item",
        custom_error_message="an item is a message, function_call, function_call_output,"
        " file_search_call, reasoning or item_reference",
    ),
]


Input = Annotated[
    Annotated[Text, A_TEXT] | Annotated[list[Item], Field(max_length=10_000), A_LIST], BY_SHAPE
]


class FunctionToolIn(FunctionIn):
    type: Literal["function"]


class SearchRankingIn(RankingOptions):
    """A search of a store may be told to rank with `none`, this tool may not."""

    ranker: Literal["auto", "default-2024-11-15"] = "auto"


class FileSearchIn(Strict):
    """A tool that is run here: the model looks something up in vector stores."""

    type: Literal["file_search"]
    vector_store_ids: list[Annotated[str, Field(max_length=64)]] = Field(
        min_length=1, max_length=MAX_PICKED
    )
    max_num_results: int = Field(20, ge=1, le=50)
    filters: Filters = None
    ranking_options: SearchRankingIn | None = None


ToolIn = Annotated[
    Annotated[FunctionToolIn, Tag("a function")] | Annotated[FileSearchIn, Tag("a file_search")],
    by_kind("type: tools here are functions, which the caller runs, and file_search"),
]


class ToolNameIn(Strict):
    type: Literal["function"]
    name: str


class HostedToolIn(Strict):
    type: Literal["file_search"]


class FormatIn(Strict):
    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = Field(None, pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.type == "json_schema") != (self.schema_ is not None):
            raise ValueError("schema: goes with the type json_schema")
        if self.schema_ is not None and self.name is None:
            raise ValueError("name: a schema needs one")
        return self

    @property
    def wanted(self) -> dict[str, Any] | None:
        """As a chat completion has it."""
        if self.schema_ is None:
            return None
        fields = {"name": self.name, "description": self.description, "strict": self.strict}
        return fields | {"schema": self.schema_}


class TextIn(Strict):
    format: FormatIn | None = None
    verbosity: Verbosity | None = None


class ReasoningIn(Strict):
    """What a model thinks is told where it does, and whole. `effort` is for models on other servers."""

    effort: Effort | None = None
    summary: Literal["auto"] | None = None
    generate_summary: None = None
    context: Literal["auto"] | None = None


class StreamOptionsIn(Strict):
    include_obfuscation: bool | None = None  # as in StreamOptions


class ResponseIn(DrawingIn):
    """The whole body."""

    model: str
    input: Input = []
    instructions: Text | None = None
    previous_response_id: str | None = Field(None, max_length=128)
    store: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptionsIn | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=1_000_000)
    text: TextIn | None = None
    tools: list[ToolIn] | None = Field(None, max_length=128)
    tool_choice: Literal["auto", "none", "required"] | ToolNameIn | HostedToolIn | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningIn | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    include: (
        list[
            Literal[
                "message.output_text.logprobs",
                "reasoning.encrypted_content",
                "file_search_call.results",
            ]
        ]
        | None
    ) = None
    metadata: Metadata | None = None
    # Understood only as far as they change nothing:
    truncation: Literal["disabled"] | None = None
    background: Literal[False] | None = None
    max_tool_calls: None = None
    conversation: Annotated[
        None, refused("there are none here; go on with previous_response_id")
    ] = None
    prompt: Annotated[None, refused("there are no stored prompts here")] = None
    context_management: Annotated[None, refused("nothing is left out of an input here")] = None
    moderation: Annotated[None, refused("what is moderated is the administrator's choice")] = None
    # For OpenAI's own bookkeeping; no answer depends on them:
    user: str | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None

    @field_validator("tools")
    @classmethod
    def _have_names_of_their_own(
        cls, tools: list[FunctionToolIn | FileSearchIn] | None
    ) -> list[FunctionToolIn | FileSearchIn] | None:
        functions = [tool.name for tool in tools or [] if isinstance(tool, FunctionToolIn)]
        if len(set(functions)) < len(functions):
            raise ValueError("two of them have the same name")
        if len(tools or []) - len(functions) > 1:
            raise ValueError("name all vector stores in one file_search")
        return tools

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.input and self.previous_response_id is None:
            raise ValueError("input: there is nothing to answer")
        return self

    @property
    def items(self) -> list[Any]:
        """The input as items."""
        if isinstance(self.input, str):
            return [MessageItem(role="user", content=self.input)]
        return self.input

    @property
    def functions(self) -> list[FunctionToolIn]:
        """The tools that the caller runs."""
        return [tool for tool in self.tools or [] if isinstance(tool, FunctionToolIn)]

    @property
    def file_search(self) -> FileSearchIn | None:
        return next((tool for tool in self.tools or [] if isinstance(tool, FileSearchIn)), None)

    @property
    def wants_results(self) -> bool:
        """Of searches in files."""
        return "file_search_call.results" in (self.include or [])

    @property
    def effort(self) -> Effort | None:
        return self.reasoning.effort if self.reasoning else None

    @property
    def verbosity(self) -> Verbosity | None:
        return self.text.verbosity if self.text else None

    @property
    def wants_logprobs(self) -> bool:
        return "message.output_text.logprobs" in (self.include or []) or bool(self.top_logprobs)

    @property
    def is_kept(self) -> bool:
        return self.store is not False
