"""An answer written again from what it was written from: same, or where it differs."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

from chat.db import in_db
from chat.engine import engine
from chat.rights import Rights
from chat.second_looks import (
    CannotLook,
    Turn,
    Written,
    check_loaded,
    check_model,
    one_at_a_time,
    with_images,
    written,
)
from inference import (
    EngineError,
    Failed,
    Finished,
    GenerateRequest,
    Loading,
    Queued,
    Tokens,
)

_TOLD_EVERY_S = 0.2
_NUM_AROUND = 12  # tokens in front of a difference, to find the place by


@dataclass(frozen=True, slots=True)
class Progress:
    """So many of the answer's tokens came again."""

    tokens: int
    of: int
    kind: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True)
class Same:
    """All tokens came again, and where the answer had come to its own end, so did the replay."""

    tokens: int
    took_ms: float
    kind: Literal["same"] = "same"


@dataclass(frozen=True, slots=True)
class Differs:
    """The first difference: token number `token` (from 0) of a turn.

    `before` is the text in front of it; `was` and `now` are the tokens as text, None for the end.
    """

    turn: int
    token: int
    before: str
    was: str | None
    now: str | None
    kind: Literal["differs"] = "differs"


@dataclass(frozen=True, slots=True)
class Broken:
    """The replay could not be finished; it says nothing about the answer."""

    code: str
    message: str
    kind: Literal["broken"] = "broken"


Result = Same | Differs | Broken


async def replay(rights: Rights, message_id: object) -> AsyncGenerator[Progress | Result, None]:
    """Progress, and a Result at last. Raises NotFound, CannotLook or UnknownModel before the first, when
    there is none.

    Runs in the background class. Leaving the iterator ends it at the engine's next step.
    """
    user = rights.user
    answer = await with_images(await in_db(written)(user, message_id))
    check_model(rights, answer)
    started_s = monotonic()
    num_done = 0
    with one_at_a_time(user):
        yield Progress(0, answer.num_tokens)
        try:
            for turn in answer.turns:
                is_last = turn is answer.turns[-1]
                ends = answer.finish_reason if is_last and answer.is_whole else ""
                async with aclosing(_replay_turn(user, answer, turn, ends or None)) as news:
                    async for piece in news:
                        if isinstance(piece, int):
                            yield Progress(num_done + piece, answer.num_tokens)
                        else:
                            yield piece
                            return
                num_done += len(turn.output_ids)
        except (EngineError, CannotLook) as error:  # of a cold model the revision is known only now
            yield Broken(error.code, str(error))
            return
    yield Same(answer.num_tokens, (monotonic() - started_s) * 1e3)


async def _replay_turn(
    user: Any, answer: Written, turn: Turn, ends: str | None
) -> AsyncGenerator[int | Result, None]:
    """How many tokens came again, now and then; a Result only where the replay is over with it.

    `ends`: the turn came to its own end, for this reason; None: it was cut, or tools were called.
    """
    expected = turn.output_ids
    request = GenerateRequest(
        request_id=f"replay-{secrets.token_hex(8)}",
        model=answer.model,
        prompt_ids=turn.prompt_ids,
        params=turn.params,
        output_ids=expected[: turn.num_given],
        user=str(user.pk),
        cache_salt=str(user.pk),
        priority="background",
        images=turn.images,
    )
    num_same, told_s = turn.num_given, monotonic()
    async with aclosing(engine().generate(request)) as updates:
        async for update in updates:
            if not isinstance(update, Loading | Queued):
                check_loaded(answer)
            match update:
                case Tokens(ids=ids):
                    for token_id in ids:
                        if num_same == len(expected) and ends is None:
                            return  # it was cut here
                        if num_same == len(expected) or token_id != expected[num_same]:
                            yield await _difference(answer, turn, num_same, token_id)
                            return
                        num_same += 1
                    if num_same == len(expected) and ends is None:
                        return
                    if monotonic() - told_s > _TOLD_EVERY_S:
                        told_s = monotonic()
                        yield num_same
                case Finished(reason=reason):
                    if num_same < len(expected) or (ends is not None and reason != ends):
                        yield await _difference(answer, turn, num_same, None)
                case Failed(code=code, message=message):
                    yield Broken(code, message)


async def _difference(answer: Written, turn: Turn, at: int, now: int | None) -> Differs:
    tokenizer = await engine().tokenizer(answer.model)
    expected = turn.output_ids
    return Differs(
        turn=turn.index,
        token=at,
        before=tokenizer.decode(list(expected[max(0, at - _NUM_AROUND) : at])),
        was=tokenizer.decode([expected[at]]) if at < len(expected) else None,
        now=None if now is None else tokenizer.decode([now]),
    )
