"""Vitrine's inference engine: transformers models that chat, embed, classify and rank, for many
people at once.

This is all that the rest of Vitrine uses. Nothing here imports torch or Django; torch lives in the
worker processes that `Engine` starts.
"""

from inference.call_forms import THINK_CLOSE, Call
from inference.catalog import BUILTIN, BUILTIN_EMBEDDING, ModelSpec, ModelState, WorkerState
from inference.chat_messages import ChatMessage
from inference.config import Adapter, EngineConfig
from inference.defaults import DEFAULT_MAX_TOKENS
from inference.encode_messages import Caller
from inference.encoder import Classifications, Embeddings, LabelScore, Relevance, Reranking
from inference.encoder_layout import EncoderLayout
from inference.engine import Engine
from inference.errors import (
    ContextTooLong,
    EncodingFailed,
    EngineError,
    GenerationFailed,
    InvalidParameter,
    ModelError,
    ModelRefused,
    ModelTooLarge,
    Overloaded,
    RequestError,
    TextTooLong,
    UnknownModel,
    WrongKind,
)
from inference.fitting import fit_messages, may_fit, newest_that_fit, prompt_room
from inference.grammar import json_object_grammar, json_schema_grammar, regex_grammar
from inference.images import IMAGE_PLACE, Image, images_of
from inference.kinds import ModelKind
from inference.messages import (
    EngineStats,
    Failed,
    Finished,
    GenerateRequest,
    Loading,
    Prefill,
    PromptLogprobs,
    Queued,
    SamplingParams,
    Timings,
    TokenLogprob,
    Tokens,
    Update,
    Usage,
)
from inference.nvml import GpuReading, read_gpus
from inference.parsing import AnswerParser, Reasoning, Segment, Text
from inference.pictures import (
    MADE_KINDS,
    GivenPicture,
    Picture,
    PictureRequest,
    Pictures,
    ToldTokens,
    picture_kind,
)
from inference.priority import Priority
from inference.sound import (
    SECOND_TOKENS,
    BadSound,
    Sound,
    SoundSegment,
    SoundTooLong,
    SoundWord,
    SpeechForm,
    SpeechRequest,
    Task,
    Transcript,
    TranscriptionRequest,
    UnknownSound,
)
from inference.strict_json import read_json
from inference.token_counter import TokenCounter
from inference.tokenizer import ChatTokenizer
from inference.tool_grammar import behind_thinking, in_form, opens_thinking, tool_grammar
from inference.upstreams.client import JsonServer
from inference.upstreams.estimates import about_image_tokens, about_prompt_tokens, about_tokens
from inference.upstreams.messages import Asked, ChatRequest, Said, UpstreamUpdate
from inference.upstreams.picture_tokens import about_picture_usage
from inference.upstreams.spec import UpstreamSpec, is_upstream, parse_upstream
from inference.vision.places import image_size, with_data
from inference.vision.prompt_images import PromptImage, cache_ids, without_data
from inference.wav import known_duration_s

__all__ = [
    "BUILTIN",
    "BUILTIN_EMBEDDING",
    "DEFAULT_MAX_TOKENS",
    "IMAGE_PLACE",
    "MADE_KINDS",
    "SECOND_TOKENS",
    "THINK_CLOSE",
    "Adapter",
    "AnswerParser",
    "Asked",
    "BadSound",
    "Call",
    "Caller",
    "ChatMessage",
    "ChatRequest",
    "ChatTokenizer",
    "Classifications",
    "ContextTooLong",
    "Embeddings",
    "EncoderLayout",
    "EncodingFailed",
    "Engine",
    "EngineConfig",
    "EngineError",
    "EngineStats",
    "Failed",
    "Finished",
    "GenerateRequest",
    "GenerationFailed",
    "GivenPicture",
    "GpuReading",
    "Image",
    "InvalidParameter",
    "JsonServer",
    "LabelScore",
    "Loading",
    "ModelError",
    "ModelKind",
    "ModelRefused",
    "ModelSpec",
    "ModelState",
    "ModelTooLarge",
    "Overloaded",
    "Picture",
    "PictureRequest",
    "Pictures",
    "Prefill",
    "Priority",
    "PromptImage",
    "PromptLogprobs",
    "Queued",
    "Reasoning",
    "Relevance",
    "RequestError",
    "Reranking",
    "Said",
    "SamplingParams",
    "Segment",
    "Sound",
    "SoundSegment",
    "SoundTooLong",
    "SoundWord",
    "SpeechForm",
    "SpeechRequest",
    "Task",
    "Text",
    "TextTooLong",
    "Timings",
    "TokenCounter",
    "TokenLogprob",
    "Tokens",
    "ToldTokens",
    "Transcript",
    "TranscriptionRequest",
    "UnknownModel",
    "UnknownSound",
    "Update",
    "UpstreamSpec",
    "UpstreamUpdate",
    "Usage",
    "WorkerState",
    "WrongKind",
    "about_image_tokens",
    "about_picture_usage",
    "about_prompt_tokens",
    "about_tokens",
    "behind_thinking",
    "cache_ids",
    "fit_messages",
    "image_size",
    "images_of",
    "in_form",
    "is_upstream",
    "json_object_grammar",
    "json_schema_grammar",
    "known_duration_s",
    "may_fit",
    "newest_that_fit",
    "opens_thinking",
    "parse_upstream",
    "picture_kind",
    "prompt_room",
    "read_gpus",
    "read_json",
    "regex_grammar",
    "tool_grammar",
    "with_data",
    "without_data",
]
