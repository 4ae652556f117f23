"""What a caller under /v1 asks, as answer() wants it. Every shape of request comes through here."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from chat.api_errors import ApiError, problem_of
from chat.asking import AnswerRequest, Sampling
from chat.draining import is_draining
from chat.drawn_images import drawn
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.image_urls import with_inline
from chat.off_loop import off_loop
from chat.openai_bodies import chat_message
from chat.openai_grammar import grammar_of
from chat.openai_schemas import ChatCompletionIn, ChatMessageIn, SamplingIn, as_sent_on
from chat.rights import Rights
from inference import ChatTokenizer, InvalidParameter


@dataclass(frozen=True, slots=True)
class Asked:
    """The request of the first choice. `tokenizer` is None where another server runs the model."""

    rights: Rights
    request: AnswerRequest
    tokenizer: ChatTokenizer | None


def chat_of(names: Mapping[str, str], **fields: Any) -> ChatCompletionIn:
    """The chat that another shape of request asks about. `names` tells what that calls a field of it.

    Raises ApiError for what is wrong only now, such as too many messages.
    """
    try:
        return ChatCompletionIn(**fields)
    except ValidationError as error:
        field, message = problem_of(error.errors()[0])
        param = names.get(field.partition(".")[0], field) if field else None
        raise ApiError(400, "invalid_value", message, param) from None


def renamed(error: InvalidParameter, names: Mapping[str, str]) -> InvalidParameter:
    """As `chat_of`, of what the chat was refused for later."""
    param = str(error.param)
    reason = str(error).removeprefix(f"{param}: ")
    return InvalidParameter(names.get(param, param), reason)


async def asked(rights: Rights, data: ChatCompletionIn, run_id: str) -> Asked:
    """Raises EngineError, and ShuttingDown where no new answer may begin."""
    if is_draining():
        raise ShuttingDown
    rights.require_model(data.model)
    refuse_images_for_the_blind(data.model, data.messages)
    if engine().is_upstream(data.model):
        found = _of_upstream(rights, data, run_id)
        messages = await with_inline(rights.user.pk, found.request.messages)
        return replace(found, request=replace(found.request, messages=messages))
    _refuse_what_models_here_cannot(data)
    tokenizer = await engine().tokenizer(data.model)
    grammar = ""
    if data.response_format or data.offered_tools:
        # In a thread: schemas of the caller's are compiled.
        grammar = await off_loop(grammar_of, data, tokenizer)
    request = _request(rights, data, run_id, grammar)
    messages = await drawn(await with_inline(rights.user.pk, request.messages))
    return Asked(rights, replace(request, messages=messages), tokenizer)


def refuse_images_for_the_blind(model: str, messages: Sequence[ChatMessageIn]) -> None:
    if any(message.images for message in messages) and not engine().sees_images(model):
        raise InvalidParameter("messages", f"{model} reads texts only, and one has an image")


def _refuse_what_models_here_cannot(data: ChatCompletionIn) -> None:
    if data.reasoning_effort is not None:
        raise InvalidParameter("reasoning_effort", "how much this model thinks is its own")
    if data.verbosity not in (None, "medium"):
        raise InvalidParameter("verbosity", "how much this model says is its own; ask it in words")


def _of_upstream(rights: Rights, data: ChatCompletionIn, run_id: str) -> Asked:
    """Another server is told what its answer has to follow, in OpenAI's own words."""
    if data.logprobs:
        raise InvalidParameter("logprobs", "not told by models that run on other servers")
    if data.forces_a_call and not engine().upstream_spec(data.model).has_tools:
        raise InvalidParameter("tool_choice", f"the server of {data.model} knows no tools")
    request = replace(
        _request(rights, data, run_id, is_sent_on=True),
        tool_schemas=as_sent_on(data.offered_tools),
        upstream_options=data.format_options(),
    )
    _refuse_what_cannot_be_sent(request)
    return Asked(rights, request, None)


def _refuse_what_cannot_be_sent(request: AnswerRequest) -> None:
    """What cannot be written as JSON, such as half a character, is the caller's fault, no server's."""
    fields = {
        "messages": [{**one, "images": ()} for one in request.messages],  # which are ASCII
        "tools": request.tool_schemas,
        "stop": request.sampling.stop,
        **request.upstream_options,
    }
    for name, value in fields.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise InvalidParameter(name, f"it cannot be written as JSON text: {error}") from None


def _request(
    rights: Rights,
    data: ChatCompletionIn,
    run_id: str,
    grammar: str = "",
    *,
    is_sent_on: bool = False,
) -> AnswerRequest:
    return AnswerRequest(
        run_id=run_id,
        model=data.model,
        messages=[chat_message(each, is_sent_on=is_sent_on) for each in data.messages],
        user=str(rights.user.pk),
        weight=rights.user.tier.weight,
        max_context_tokens=rights.user.tier.context_tokens,
        sampling=sampling_of(
            data,
            max_tokens=data.max_completion_tokens or data.max_tokens,
            num_logprobs=(data.top_logprobs or 0) if data.logprobs else None,
            grammar=grammar,
        ),
        tool_schemas=data.tool_schemas(),
        priority=rights.priority,
        api_key=rights.key_name,
    )


def sampling_of(
    data: SamplingIn, *, max_tokens: int | None, num_logprobs: int | None, grammar: str = ""
) -> Sampling:
    return Sampling(
        max_tokens=max_tokens,
        temperature=data.temperature,
        top_p=data.top_p,
        top_k=data.top_k,
        min_p=data.min_p,
        seed=None if data.seed is None else data.seed % 2**63,
        stop=tuple(data.stop_strings),
        stop_token_ids=tuple(data.stop_token_ids or ()),
        ignore_eos=bool(data.ignore_eos),
        min_tokens=data.min_tokens or 0,
        presence_penalty=data.presence_penalty or 0.0,
        frequency_penalty=data.frequency_penalty or 0.0,
        repetition_penalty=data.repetition_penalty,
        logit_bias=data.biases,
        num_logprobs=num_logprobs,
        grammar=grammar,
    )


def for_choice(sampling: Sampling, index: int) -> Sampling:
    """Of choice `index`: it draws from a seed of its own, the first from the given one."""
    if index == 0 or sampling.seed is None:
        return sampling
    digest = hashlib.blake2b(f"{sampling.seed} {index}".encode(), digest_size=8).digest()
    return replace(sampling, seed=int.from_bytes(digest) % 2**63)
