"""What is wrong with a request, before anything is queued: one clear error each."""

import reprlib
from collections.abc import Callable
from math import inf
from typing import Any

from inference.errors import ContextTooLong, InvalidParameter, RequestError
from inference.messages import GenerateRequest, SamplingParams
from inference.priority import RANK
from inference.vision.prompt_images import PromptImage

MAX_LOGPROBS = 20
MAX_BIASES = 1024  # OpenAI's own bound; each one is added to a row of logits at every step
MAX_GRAMMAR_CHARS = 256 * 1024
MAX_STOPS = 64
MAX_STOP_TOKENS = 64
MAX_TOP_K = 1_000_000  # no vocabulary is larger, and the sampler counts in 64 bits
MAX_STOP_CHARS = 2_000


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return value is None or _is_int(value)


def _is_weight(value: Any) -> bool:
    return _is_number(value) and 0 < value < inf


def _is_priority(value: Any) -> bool:
    return _is_text(value) and value in RANK


def _are_ids(value: Any) -> bool:
    return isinstance(value, tuple) and {*map(type, value)} <= {int}


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_text, value))


def _are_images(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(one, PromptImage)
        and _is_int(one.offset)
        and _is_int(one.num_ids)
        and _is_text(one.digest)
        and isinstance(one.data, bytes)
        and _is_int(one.num_columns)
        and one.num_columns >= 0
        for one in value
    )


def _are_biases(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and _is_int(pair[0]) and _is_number(pair[1])
        for pair in value
    )


_Kind = tuple[Callable[[Any], bool], str]
_INT: _Kind = (_is_int, "whole number")
_NUMBER: _Kind = (_is_number, "number")
_COUNT: _Kind = (_is_count, "whole number")
_TEXT: _Kind = (_is_text, "text")
_IDS: _Kind = (_are_ids, "tuple of token ids")
_OF_REQUEST: dict[str, _Kind] = {
    "prompt_ids": _IDS,
    "output_ids": _IDS,
    "num_prompt_rated": _INT,
    "user": _TEXT,
    "cache_salt": _TEXT,
    "adapter": _TEXT,
    "weight": (_is_weight, "positive number"),
    "priority": (_is_priority, "class of requests"),
    "images": (_are_images, "tuple of images"),
}
_OF_PARAMS: dict[str, _Kind] = {
    **dict.fromkeys(("max_tokens", "min_tokens", "seed", "top_k"), _INT),
    **dict.fromkeys(("temperature", "top_p", "min_p"), _NUMBER),
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "repetition_penalty"), _NUMBER),
    **dict.fromkeys(("num_logprobs", "num_prompt_logprobs"), _COUNT),
    "stop": (_are_texts, "tuple of texts"),
    "stop_token_ids": _IDS,
    "logit_bias": (_are_biases, "tuple of token ids with their numbers"),
    "grammar": _TEXT,
}

_RANGES: dict[str, tuple[float, float | None]] = {
    "max_tokens": (1, None),
    "temperature": (0, 100),
    "top_k": (0, MAX_TOP_K),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "repetition_penalty": (0.01, 100),
    "seed": (-(2**63), 2**63 - 1),
}


def may_be(name: str, value: Any) -> bool:
    """Whether a number among the sampling parameters may have this value."""
    is_sound, _ = _OF_PARAMS[name]
    return is_sound(value) and _is_within(value, *_RANGES[name])


def check_types(request: GenerateRequest) -> None:
    """What is of another type than it is said to be would fail wherever it is first compared or counted,
    maybe in the middle of others' work. Raises InvalidParameter."""
    for values, kinds in ((request, _OF_REQUEST), (request.params, _OF_PARAMS)):
        for name, (is_sound, noun) in kinds.items():
            if not is_sound(value := getattr(values, name)):
                raise InvalidParameter(name, f"{reprlib.repr(value)} is no {noun}")


def check_request(
    request: GenerateRequest, *, max_context_tokens: int, vocab_size: int, sees: bool = False
) -> None:
    """`sees`: the model does. Raises RequestError, ContextTooLong or InvalidParameter."""
    check_types(request)
    if not request.prompt_ids:
        raise RequestError("The prompt is empty.")
    if len(request.prompt_ids) >= max_context_tokens:
        raise ContextTooLong(
            num_prompt_tokens=len(request.prompt_ids), max_context_tokens=max_context_tokens
        )
    if len(request.prompt_ids) + len(request.output_ids) > max_context_tokens:
        raise RequestError("The resumed answer is longer than the context.")
    if not all(0 <= i < vocab_size for i in request.prompt_ids + request.output_ids):
        raise RequestError("The prompt holds token ids that the model does not know.")
    _check_images(request, sees=sees)
    _check_params(request.params, vocab_size)


def _check_images(request: GenerateRequest, *, sees: bool) -> None:
    if request.images and not sees:
        raise RequestError("This model reads texts only, and the prompt has an image.")
    end = 0
    for image in request.images:
        if not end <= image.offset < image.end <= len(request.prompt_ids):
            raise RequestError("An image has no place in the prompt.")
        end = image.end


def _check_params(params: SamplingParams, vocab_size: int) -> None:
    for name, (least, most) in _RANGES.items():
        _in_range(name, getattr(params, name), least, most)
    _in_range("min_tokens", params.min_tokens, 0, params.max_tokens)
    for name in ("num_logprobs", "num_prompt_logprobs"):
        if (number := getattr(params, name)) is not None:
            _in_range(name, number, 0, MAX_LOGPROBS)
    if len(params.logit_bias) > MAX_BIASES:
        raise InvalidParameter("logit_bias", f"at most {MAX_BIASES} tokens may be biased")
    for token_id, bias in params.logit_bias:
        _known("logit_bias", token_id, vocab_size)
        _in_range("logit_bias", bias, -100, 100)
    if len(params.stop_token_ids) > MAX_STOP_TOKENS:
        raise InvalidParameter("stop_token_ids", f"more than {MAX_STOP_TOKENS} tokens")
    for token_id in params.stop_token_ids:
        _known("stop_token_ids", token_id, vocab_size)
    if len(params.grammar) > MAX_GRAMMAR_CHARS:
        raise InvalidParameter("grammar", f"longer than {MAX_GRAMMAR_CHARS // 1024} KiB")
    if len(params.stop) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARS for stop in params.stop):
        raise InvalidParameter(
            "stop", f"at most {MAX_STOPS} strings of up to {MAX_STOP_CHARS} characters"
        )


def _in_range(name: str, value: float, least: float, most: float | None = None) -> None:
    if _is_within(value, least, most):
        return
    bound = f"at least {least}" if most is None else f"from {least} to {most}"
    raise InvalidParameter(name, f"{reprlib.repr(value)} is not {bound}")


def _is_within(value: float, least: float, most: float | None) -> bool:
    # Written so that NaN, which no comparison is true for, is out of every range, and so that integers
    # that no float can hold are compared as they are.
    return least <= value and (value < inf if most is None else value <= most)


def _known(name: str, token_id: int, vocab_size: int) -> None:
    if not 0 <= token_id < vocab_size:
        raise InvalidParameter(name, f"the model has no token {reprlib.repr(token_id)}")
