"""Texts that go to a model outside of any answer, to be spoken or to tell how to listen: what a policy
stops does not leave the house."""

from collections.abc import Sequence
from typing import Literal

from chat.api_errors import ApiError, status_of
from chat.asking import AnswerRequest
from chat.ids import uuid7
from chat.rights import Rights
from chat.screen import must_wait, screen_of


async def fit_to_leave(
    rights: Rights,
    model: str,
    texts: Sequence[str],
    stage: Literal["input", "output"],
    *,
    param: str,
) -> list[str]:
    """The texts, without what a policy takes out; `param` is what the caller calls them.

    Raises ApiError where a policy stops one.
    """
    user = rights.user
    judged = AnswerRequest(
        run_id=uuid7().hex,
        model=model,
        messages=[{"role": "user", "content": text} for text in texts],
        user=str(user.pk),
        weight=user.tier.weight,
        priority=rights.priority,
        api_key=rights.key_name,
    )
    screen = await screen_of(judged)
    if stage == "input" and (failed := await must_wait(screen)) is not None:
        wait_s = failed.retry_after_s
        raise ApiError(status_of(failed.code), failed.code, failed.message, None, wait_s)
    outcome = await screen.judge(stage, texts)
    # What is let through without a reason leaves no row for each sentence that is read aloud.
    if outcome.verdict.action != "allow" or outcome.failed or screen.chosen.trials:
        refused = await screen.decide(stage, outcome)
        if refused is not None:
            raise ApiError(status_of(refused.code), refused.code, refused.message, param)
    if not screen.redacts(stage):
        return list(texts)
    return [screen.redacted(stage, text) for text in texts]
