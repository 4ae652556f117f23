"""Text that is spoken by a model on another server: judged, billed, and handed on as it comes.

What a policy stops does not leave the house: texts of programs are judged as what is asked, and answers
that people have read to them as what was answered.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from chat.bills import billed
from chat.draining import is_draining
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import RunUsage
from chat.leaving import fit_to_leave
from chat.rights import Rights
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
    told = [request.text, request.instructions]
    told = await fit_to_leave(rights, request.model, told, stage, param="input")
    pieces = _billed(rights, replace(request, text=told[0], instructions=told[1]))
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
