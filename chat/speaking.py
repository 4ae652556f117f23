"""Text that is spoken by a model on another server: judged, billed, and handed on as it comes.

What a policy stops does not leave the house: texts of programs are judged as what is asked, and answers
that people have read to them as what was answered.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from chat.answers import is_draining
from chat.api_errors import ApiError, status_of
from chat.asking import AnswerRequest
from chat.bills import billed
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import RunUsage
from chat.ids import uuid7
from chat.rights import Rights
from chat.screen import must_wait, screen_of
from chat.streaming import ClosingStream
from inference import SpeechForm, SpeechRequest, about_tokens

MEDIA_TYPES: dict[SpeechForm, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


async def spoken(
    rights: Rights, request: SpeechRequest, stage: Literal["input", "output"]
) -> ClosingStream:
    """A response of sound, once its first piece is there. Raises EngineError, ChatError, ApiError."""
    if is_draining():
        raise ShuttingDown
    rights.require_model(request.model, "speech")
    text = await _fit_to_speak(rights, request, stage)
    pieces = _billed(rights, replace(request, text=text))
    try:
        first = await anext(pieces)
    except BaseException:
        await pieces.aclose()
        raise
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    kind = MEDIA_TYPES[request.form]
    return ClosingStream(_behind(first, pieces), content_type=kind, headers=headers)


async def _behind(first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        yield first
        async for piece in pieces:
            yield piece


async def _billed(rights: Rights, request: SpeechRequest) -> AsyncGenerator[bytes, None]:
    """It counts as the tokens of its text, once somebody has begun to speak."""
    num_tokens = max(1, about_tokens(request.text, request.instructions))
    async with (
        billed(rights, request.model, most_tokens=[num_tokens]) as bill,
        aclosing(engine().speak(request)) as pieces,
    ):
        bill.usage = RunUsage()
        async for piece in pieces:
            bill.usage = RunUsage(prompt_tokens=num_tokens)
            yield piece


async def _fit_to_speak(
    rights: Rights, request: SpeechRequest, stage: Literal["input", "output"]
) -> str:
    """The text, without what a policy takes out. Raises ApiError where one stops it."""
    user = rights.user
    texts = [text for text in (request.text, request.instructions) if text]
    judged = AnswerRequest(
        run_id=uuid7().hex,
        model=request.model,
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
    if outcome.verdict.action != "allow" or outcome.failed or screen.chosen.trials:
        refused = await screen.decide(stage, outcome)
        if refused is not None:
            raise ApiError(status_of(refused.code), refused.code, refused.message, "input")
    return screen.redacted(stage, request.text) if screen.redacts(stage) else request.text
