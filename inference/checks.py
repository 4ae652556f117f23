"""What is wrong with a request, before anything is queued: one clear error each."""

import reprlib
from math import inf

from inference.errors import ContextTooLong, InvalidParameter, RequestError
from inference.messages import GenerateRequest, SamplingParams

MAX_LOGPROBS = 20
MAX_BIASES = 1024  # OpenAI's own bound; each one is added to a row of logits at every step
MAX_GRAMMAR_CHARS = 256 * 1024
MAX_STOPS = 64
MAX_STOP_CHARS = 2_000


def check_request(request: GenerateRequest, *, max_context_tokens: int, vocab_size: int) -> None:
    """Raises RequestError, ContextTooLong or InvalidParameter."""
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
    _check_params(request.params, vocab_size)


def _check_params(params: SamplingParams, vocab_size: int) -> None:
    _in_range("max_tokens", params.max_tokens, 1)
    _in_range("min_tokens", params.min_tokens, 0, params.max_tokens)
    _in_range("temperature", params.temperature, 0, 100)
    _in_range("top_k", params.top_k, 0)
    _in_range("top_p", params.top_p, 0, 1)
    _in_range("min_p", params.min_p, 0, 1)
    _in_range("presence_penalty", params.presence_penalty, -2, 2)
    _in_range("frequency_penalty", params.frequency_penalty, -2, 2)
    _in_range("repetition_penalty", params.repetition_penalty, 0.01, 100)
    _in_range("seed", params.seed, -(2**63), 2**63 - 1)
    for name in ("num_logprobs", "num_prompt_logprobs"):
        if (number := getattr(params, name)) is not None:
            _in_range(name, number, 0, MAX_LOGPROBS)
    if len(params.logit_bias) > MAX_BIASES:
        raise InvalidParameter("logit_bias", f"at most {MAX_BIASES} tokens may be biased")
    for token_id, bias in params.logit_bias:
        _known("logit_bias", token_id, vocab_size)
        _in_range("logit_bias", bias, -100, 100)
    for token_id in params.stop_token_ids:
        _known("stop_token_ids", token_id, vocab_size)
    if len(params.grammar) > MAX_GRAMMAR_CHARS:
        raise InvalidParameter("grammar", f"longer than {MAX_GRAMMAR_CHARS // 1024} KiB")
    if len(params.stop) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARS for stop in params.stop):
        raise InvalidParameter(
            "stop", f"at most {MAX_STOPS} strings of up to {MAX_STOP_CHARS} characters"
        )


def _in_range(name: str, value: float, least: float, most: float | None = None) -> None:
    # Written so that NaN, which no comparison is true for, is out of every range, and so that integers
    # that no float can hold are compared as they are.
    if least <= value and (value < inf if most is None else value <= most):
        return
    bound = f"at least {least}" if most is None else f"from {least} to {most}"
    raise InvalidParameter(name, f"{reprlib.repr(value)} is not {bound}")


def _known(name: str, token_id: int, vocab_size: int) -> None:
    if not 0 <= token_id < vocab_size:
        raise InvalidParameter(name, f"the model has no token {reprlib.repr(token_id)}")
