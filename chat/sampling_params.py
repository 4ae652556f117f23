"""What a caller asked for, filled up with what the makers of the model advise."""

from chat.asking import Sampling
from chat.engine import engine
from inference import DEFAULT_MAX_TOKENS, SamplingParams


def sampling_params(model: str, asked: Sampling, *, seed: int, grammar: str) -> SamplingParams:
    """For a model of our own engine."""
    default = engine().sampling_defaults(model)
    return SamplingParams(
        max_tokens=asked.max_tokens or DEFAULT_MAX_TOKENS,
        seed=seed,
        temperature=default.temperature if asked.temperature is None else asked.temperature,
        top_p=default.top_p if asked.top_p is None else asked.top_p,
        top_k=default.top_k if asked.top_k is None else asked.top_k,
        min_p=default.min_p if asked.min_p is None else asked.min_p,
        stop=asked.stop,
        stop_token_ids=asked.stop_token_ids,
        ignore_eos=asked.ignore_eos,
        min_tokens=asked.min_tokens,
        presence_penalty=asked.presence_penalty,
        frequency_penalty=asked.frequency_penalty,
        repetition_penalty=asked.repetition_penalty or default.repetition_penalty,
        logit_bias=asked.logit_bias,
        num_logprobs=asked.num_logprobs,
        grammar=grammar,
    )
