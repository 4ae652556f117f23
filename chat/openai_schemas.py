"""The body of /v1/chat/completions, and what other bodies under /v1 share with it.

Source: OpenAI's published API description, version 2.3.0.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from chat.image_urls import checked_url
from chat.json_texts import MAX_DEPTH, depth_of
from chat.strict import Body
from inference import IMAGE_PLACE, Image

Text = Annotated[str, Field(max_length=1_000_000)]
TokenId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
Bias = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
TopK = Annotated[int, Field(ge=-1, le=1_000_000), AfterValidator(lambda value: max(0, value))]
"""All tokens are 0 here, and -1 in vLLM's dialect."""


def _shallow(value: Any) -> Any:
    if depth_of(value) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return value


def _sayable(text: str) -> str:
    """Arguments that a template can write as JSON; what is no JSON is a text, which always can be."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    except ValueError:
        return text
    _shallow(value)
    return text


Anything = Annotated[list[Any], AfterValidator(_shallow)]
AnyObject = Annotated[dict[str, Any], AfterValidator(_shallow)]
"""What is kept or shown to the model as it came, by code that goes as deep as it does."""


def _at_most(num_chars: int) -> AfterValidator:
    """Of any text; pydantic's own limit refuses those with half a character as well."""

    def check(text: str) -> str:
        if len(text) > num_chars:
            raise ValueError(f"at most {num_chars} characters")
        return text

    return AfterValidator(check)


_Name = Annotated[str, _at_most(64)]
_Value = Annotated[str, _at_most(512)]
Metadata = Annotated[dict[_Name, _Value], Field(max_length=16)]
"""What a caller notes of something for themselves; the limits are OpenAI's."""


class Strict(Body):
    """What is understood is listed; a field that would change the answer and is not yet understood
    is refused, never ignored."""

    model_config = ConfigDict(extra="forbid")


def refused(reason: str) -> BeforeValidator:
    """For a parameter that others know and no answer here can follow: null, which asks nothing of it,
    is all that it may be."""

    def check(value: Any) -> None:
        if value is not None:
            raise ValueError(reason)

    return BeforeValidator(check)


# Branches of a union, chosen by the value: an error then tells what is wrong with the one that was
# meant. Tags with a blank are no part of a field's name in it.


def _shape(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a text"


A_TEXT, A_LIST, BY_SHAPE = Tag("a text"), Tag("a list"), Discriminator(_shape)


def _input_shape(value: Any) -> str:
    if not isinstance(value, list):
        return "a text"
    first = value[0] if value else ""
    if isinstance(first, list):
        return "lists of ids"
    return "a list of ids" if isinstance(first, int) else "a list"


A_LIST_OF_IDS, LISTS_OF_IDS = Tag("a list of ids"), Tag("lists of ids")
BY_INPUT_SHAPE = Discriminator(_input_shape)
"""Of a text, texts, the token ids of one, and those of several."""


def _part_kind(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"a {kind}" if isinstance(kind, str) else None


def by_kind(otherwise: str) -> Discriminator:
    """Of parts that tell their kind by `type`, with a Tag "a …" each; `otherwise` is said of others."""
    return Discriminator(_part_kind, custom_error_type="part", custom_error_message=otherwise)


NO_FILES = "a part is a text or, of a user, an image; no model here reads sound or files"
NO_PICTURES = "a part of this is a text"


class CachedPart(Strict):
    """What is cached, and how long, is ours to decide."""

    prompt_cache_breakpoint: dict[str, Any] | None = None


class TextPart(CachedPart):
    type: Literal["text"]
    text: Text


class RefusalPart(Strict):
    """Of an assistant's message that comes back."""

    type: Literal["refusal"]
    refusal: Text


ImageAddress = Annotated[str, AfterValidator(checked_url)]
Detail = Literal["auto", "low", "high", "original"]


class ImageUrl(Strict):
    url: ImageAddress
    detail: Detail | None = None


class ImagePart(CachedPart):
    """Of a user's message, for models that see."""

    type: Literal["image_url"]
    image_url: ImageUrl

    @field_validator("image_url", mode="before")
    @classmethod
    def _is_named(cls, value: Any) -> Any:
        """Some clients leave the object out."""
        return {"url": value} if isinstance(value, str) else value


Part = Annotated[
    Annotated[TextPart, Tag("a text")]
    | Annotated[RefusalPart, Tag("a refusal")]
    | Annotated[ImagePart, Tag("a image_url")],
    by_kind(NO_FILES),
]
TextContent = Annotated[Annotated[Text, A_TEXT] | Annotated[list[TextPart], A_LIST], BY_SHAPE]
Content = Annotated[Annotated[Text, A_TEXT] | Annotated[list[Part], A_LIST], BY_SHAPE]


class FunctionCall(Strict):
    name: str
    arguments: Annotated[str, AfterValidator(_sayable)]
    parsed_arguments: Any = None  # as `parsed` of a message


class ToolCallIn(Strict):
    id: str
    index: int | None = None
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessageIn(Strict):
    """One message. Content is a text or a list of parts."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    tool_calls: list[ToolCallIn] | None = None
    tool_call_id: str | None = None
    name: str | None = Field(None, max_length=256)
    # What an answer of ours or of OpenAI's carries, and clients send back as they got it:
    refusal: Text | None = None
    reasoning_content: str | None = None
    function_call: None = None
    audio: None = None
    annotations: Anything | None = None
    # What the client's own parse() has read of the content, which says the same:
    parsed: Any = None

    @model_validator(mode="after")
    def _is_whole(self) -> "ChatMessageIn":
        if self.images and self.role != "user":
            raise ValueError("images are a user's")
        if self.role == "tool" and not self.tool_call_id:
            raise ValueError("a tool message needs tool_call_id")
        said = self.tool_calls or self.refusal or self.reasoning_content
        if self.content is None and not (self.role == "assistant" and said):
            raise ValueError("content is missing")
        return self

    @property
    def text(self) -> str:
        """What the model reads of it: a refusal stands in place of content, and a mark in that of an
        image, which no text around it has then."""
        if not isinstance(self.content, list):
            return self.content or self.refusal or ""
        if not self.images:
            return "".join(map(_text_of, self.content))
        texts = (_text_of(part).replace(IMAGE_PLACE, "") for part in self.content)
        pairs = zip(self.content, texts, strict=True)
        return "".join(IMAGE_PLACE if isinstance(p, ImagePart) else text for p, text in pairs)

    @property
    def images(self) -> tuple[Image, ...]:
        parts = self.content if isinstance(self.content, list) else []
        found = [part.image_url for part in parts if isinstance(part, ImagePart)]
        return tuple(Image(one.url, one.detail or "") for one in found)


def _text_of(part: TextPart | RefusalPart | ImagePart) -> str:
    match part:
        case TextPart(text=text) | RefusalPart(refusal=text):
            return text
    return ""


class StreamOptions(Strict):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None  # there is none: lengths of frames tell those of texts


class FunctionIn(Strict):
    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    @model_validator(mode="after")
    def _is_sayable(self) -> "FunctionIn":
        """Parameters reach the model as text, by way of a template that goes as deep as they do."""
        if depth_of(self.parameters) > MAX_DEPTH:
            raise ValueError(f"parameters: nested deeper than {MAX_DEPTH}")
        try:
            said = [self.description, self.parameters]
            json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:  # half a character, or NaN
            raise ValueError(f"it cannot be written as JSON text: {error}") from None
        return self


class ToolIn(Strict):
    type: Literal["function"]
    function: FunctionIn


class ToolName(Strict):
    name: str


class NamedTool(Strict):
    """The choice of one tool: it has to be called."""

    type: Literal["function"]
    function: ToolName


ToolWord = Annotated[Literal["auto", "none", "required"], Tag("a word")]
BY_CHOICE = Discriminator(lambda value: "a word" if isinstance(value, str) else "a tool")
ToolChoice = Annotated[ToolWord | Annotated[NamedTool, Tag("a tool")], BY_CHOICE]


class JsonSchema(Strict):
    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Strict):
    type: Literal["text", "json_object", "json_schema"] = "text"
    wanted: JsonSchema | None = Field(None, alias="json_schema")

    @model_validator(mode="after")
    def _is_whole(self) -> "ResponseFormat":
        if (self.type == "json_schema") != (self.wanted is not None):
            raise ValueError("json_schema: goes with the type json_schema")
        return self


class DrawingIn(Strict):
    """How tokens are drawn, in every body that asks for text."""

    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    # Of vLLM's and llama.cpp's dialect:
    top_k: TopK | None = None
    min_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)


class SamplingIn(DrawingIn):
    """All that chat completions and completions say of how to draw, and where to stop."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: Annotated[Annotated[str, A_TEXT] | Annotated[list[str], A_LIST], BY_SHAPE] | None = None
    n: int | None = Field(None, ge=1, le=16)
    presence_penalty: float | None = Field(None, ge=-2, le=2, allow_inf_nan=False)
    frequency_penalty: float | None = Field(None, ge=-2, le=2, allow_inf_nan=False)
    logit_bias: dict[TokenId, Bias] | None = Field(None, max_length=1024)
    user: str | None = None
    # Of vLLM's and llama.cpp's dialect:
    repetition_penalty: float | None = Field(None, ge=0.01, le=100, allow_inf_nan=False)
    min_tokens: int | None = Field(None, ge=0, le=1_000_000)
    stop_token_ids: list[int] | None = Field(None, max_length=64)
    ignore_eos: bool | None = None

    @model_validator(mode="after")
    def _stops(self) -> Self:
        if not 0 <= len(self.stop_strings) <= 4 or any(
            not s or len(s) > 500 for s in self.stop_strings
        ):
            raise ValueError("stop: at most 4 strings of 1 to 500 characters")
        return self

    @property
    def biases(self) -> tuple[tuple[int, float], ...]:
        return tuple((int(token), bias) for token, bias in (self.logit_bias or {}).items())

    @property
    def stop_strings(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def wants_usage(self) -> bool:
        """Of a stream: whether its last chunk tells the usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]


class Prediction(Strict):
    """What much of the answer is expected to be, which at OpenAI makes it come sooner."""

    type: Literal["content"]
    content: TextContent


class PromptCacheOptions(Strict):
    """What is cached, and how long, is ours to decide."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: str | None = Field(None, max_length=32)


class ChatCompletionIn(SamplingIn):
    """The whole body."""

    messages: list[ChatMessageIn] = Field(min_length=1, max_length=10_000)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    tools: list[ToolIn] | None = Field(None, max_length=128)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    response_format: ResponseFormat | None = None
    # For models on other servers; of our own only what changes nothing:
    reasoning_effort: Effort | None = None
    verbosity: Verbosity | None = None
    # Understood only as far as they change nothing:
    modalities: list[Literal["text"]] | None = Field(None, max_length=1)
    functions: Annotated[None, refused("the older form of tools; send tools")] = None
    function_call: Annotated[None, refused("the older form of tool_choice; send that")] = None
    audio: Annotated[None, refused("no model here speaks")] = None
    web_search_options: Annotated[None, refused("no model here searches the web")] = None
    moderation: Annotated[None, refused("what is moderated is the administrator's choice")] = None
    # For OpenAI's own bookkeeping and speed; no answer depends on them:
    prediction: Prediction | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None

    @model_validator(mode="after")
    def _is_supported(self) -> "ChatCompletionIn":
        names = {tool.function.name for tool in self.tools or []}
        if len(names) < len(self.tools or []):
            raise ValueError("tools: two of them have the same name")
        if self.tool_choice == "required" and not names:
            raise ValueError("tool_choice: there are no tools to choose from")
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.function.name not in names:
            raise ValueError("tool_choice: no tool has this name")
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: needs logprobs to be true")
        return self

    @field_validator("messages")
    @classmethod
    def _answer_calls(cls, messages: list[ChatMessageIn]) -> list[ChatMessageIn]:
        """Templates render a result without its call as nonsense, and no model was trained on it."""
        called: set[str] = set()
        for index, message in enumerate(messages):
            called |= {call.id for call in message.tool_calls or []}
            if message.role == "tool" and message.tool_call_id not in called:
                raise ValueError(
                    f"message {index} with the role 'tool' has to answer a preceding message with"
                    f" 'tool_calls'; none has the id '{message.tool_call_id}'"
                )
        return messages

    @property
    def offered_tools(self) -> list[ToolIn]:
        return [] if self.tool_choice == "none" else self.tools or []

    def format_options(self) -> dict[str, Any]:
        """What the answer has to follow, in OpenAI's own words, as far as the caller said so."""
        names = {"response_format", "tool_choice", "parallel_tool_calls"}
        names |= {"reasoning_effort", "verbosity"}
        return self.model_dump(include=names, exclude_none=True, by_alias=True)

    def tool_schemas(self) -> tuple[dict[str, Any], ...]:
        return as_schemas(self.offered_tools)

    @property
    def forces_a_call(self) -> bool:
        return self.tool_choice == "required" or isinstance(self.tool_choice, NamedTool)


def as_schemas(tools: Sequence[ToolIn]) -> tuple[dict[str, Any], ...]:
    """Tools as the model sees them: what the caller wrote, less what is said to us."""
    hidden = {"function": {"strict"}}
    return tuple(tool.model_dump(exclude_unset=True, exclude=hidden) for tool in tools)


def as_sent_on(tools: Sequence[ToolIn]) -> tuple[dict[str, Any], ...]:
    """Tools as another server is told of them: `strict` is for it to keep."""
    return tuple(
        tool.model_dump(exclude_unset=True)
        if tool.function.strict is not None
        else as_schemas([tool])[0]
        for tool in tools
    )
