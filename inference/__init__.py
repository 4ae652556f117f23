"""Vitrine's inference engine: any transformers causal language model, for many people at once.

This is all that the rest of Vitrine uses. Nothing here imports torch or Django; torch lives in the
worker processes that `Engine` starts.
"""

from inference.call_forms import Call
from inference.catalog import BUILTIN, ModelSpec, ModelState
from inference.config import EngineConfig
from inference.engine import Engine
from inference.errors import (
    ContextTooLong,
    EngineError,
    GenerationFailed,
    InvalidParameter,
    ModelError,
    ModelRefused,
    ModelTooLarge,
    Overloaded,
    RequestError,
    UnknownModel,
)
from inference.grammar import json_object_grammar, json_schema_grammar, regex_grammar
from inference.messages import (
    EngineStats,
    Failed,
    Finished,
    GenerateRequest,
    Loading,
    Prefill,
    Priority,
    PromptLogprobs,
    Queued,
    SamplingParams,
    Timings,
    TokenLogprob,
    Tokens,
    Update,
    Usage,
)
from inference.parsing import AnswerParser, Reasoning, Segment, Text
from inference.tokenizer import ChatMessage, ChatTokenizer
from inference.tool_grammar import behind_thinking, opens_thinking, tool_grammar

__all__ = [
    "BUILTIN",
    "AnswerParser",
    "Call",
    "ChatMessage",
    "ChatTokenizer",
    "ContextTooLong",
    "Engine",
    "EngineConfig",
    "EngineError",
    "EngineStats",
    "Failed",
    "Finished",
    "GenerateRequest",
    "GenerationFailed",
    "InvalidParameter",
    "Loading",
    "ModelError",
    "ModelRefused",
    "ModelSpec",
    "ModelState",
    "ModelTooLarge",
    "Overloaded",
    "Prefill",
    "Priority",
    "PromptLogprobs",
    "Queued",
    "Reasoning",
    "RequestError",
    "SamplingParams",
    "Segment",
    "Text",
    "Timings",
    "TokenLogprob",
    "Tokens",
    "UnknownModel",
    "Update",
    "Usage",
    "behind_thinking",
    "json_object_grammar",
    "json_schema_grammar",
    "opens_thinking",
    "regex_grammar",
    "tool_grammar",
]
