"""How likely the model found each token of an answer, and what it found likelier.

Nothing is recorded while answers are written. The engine reads prompt and answer again in one pass
(most of it from its cache) and rates the answer's tokens, as the model is: before temperature, filters
and penalties. What it costs is paid by who asks.
"""

import codecs
import secrets
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

from chat.api_errors import ApiError, status_of
from chat.db import in_db
from chat.engine import engine
from chat.rights import Rights
from chat.second_looks import (
    Turn,
    Written,
    check_loaded,
    check_model,
    one_at_a_time,
    with_images,
    written,
)
from chat.storable import storable
from chat.values import Value
from inference import (
    ChatTokenizer,
    Failed,
    GenerateRequest,
    Loading,
    PromptLogprobs,
    Queued,
    SamplingParams,
    TokenLogprob,
)

NUM_ALTERNATIVES = 6
_PARAMS = SamplingParams(max_tokens=1, temperature=0.0, num_prompt_logprobs=NUM_ALTERNATIVES)


async def likelihoods(rights: Rights, message_id: object) -> Value:
    """All turns of an answer, token by token. Raises NotFound, CannotLook, EngineError, ApiError."""
    user = rights.user
    answer = await with_images(await in_db(written)(user, message_id))
    check_model(rights, answer)
    tokenizer = await engine().tokenizer(answer.model)
    with one_at_a_time(user):
        rated = [(turn, await _rate(user, answer, turn)) for turn in answer.turns]
    return {
        "model": answer.model,
        "revision": answer.revision,
        "turns": [
            {"index": turn.index, "tokens": _values(turn, entries, tokenizer)}
            for turn, entries in rated
        ],
    }


async def _rate(user: Any, answer: Written, turn: Turn) -> list[TokenLogprob]:
    """An entry for each token; of an answer that fills the context the last may have none."""
    limit = engine().context_tokens(answer.model) - 1
    whole = (turn.prompt_ids + turn.output_ids)[:limit]
    num_wanted = len(whole) - len(turn.prompt_ids)
    request = GenerateRequest(
        request_id=f"rate-{secrets.token_hex(8)}",
        model=answer.model,
        prompt_ids=whole,
        params=_PARAMS,
        num_prompt_rated=len(turn.prompt_ids),
        user=str(user.pk),
        cache_salt=str(user.pk),
        priority="background",
        images=turn.images,
    )
    entries: list[TokenLogprob] = []
    async with aclosing(engine().generate(request)) as updates:
        async for update in updates:
            if not isinstance(update, Loading | Queued):
                check_loaded(answer)
            match update:
                case PromptLogprobs(logprobs=logprobs):
                    entries += logprobs
                    if len(entries) == num_wanted:
                        break
                case Failed(code=code, message=message):
                    raise ApiError(status_of(code), code, message)
    return entries


def _values(turn: Turn, entries: list[TokenLogprob], tokenizer: ChatTokenizer) -> list[Value]:
    texts = _texts(turn.output_ids, tokenizer)
    rated: list[TokenLogprob | None] = [*entries]
    rated += [None] * (len(turn.output_ids) - len(entries))
    return [
        {
            "id": token_id,
            "text": text,
            "logprob": entry.logprob if entry else None,
            "top": [
                {
                    "id": other,
                    "text": _alone(other, tokenizer),
                    "logprob": logprob,
                    "is_mark": _alone(other, tokenizer) in tokenizer.added_tokens,
                }
                for other, logprob in (entry.top if entry else ())
            ],
        }
        for token_id, text, entry in zip(turn.output_ids, texts, rated, strict=True)
    ]


def _texts(ids: Iterable[int], tokenizer: ChatTokenizer) -> list[str]:
    """What each token adds to the saved text: of a character in pieces, its last piece has all of it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [storable(decoder.decode(tokenizer.token_bytes(token_id))) for token_id in ids]


def _alone(token_id: int, tokenizer: ChatTokenizer) -> str:
    return tokenizer.token_bytes(token_id).decode("utf-8", "replace")
