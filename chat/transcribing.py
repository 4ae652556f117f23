"""Sound that becomes text: its file for as long as that takes, the model's right, the bill."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from chat.bills import billed
from chat.draining import is_draining
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import RunUsage
from chat.leaving import fit_to_leave
from chat.rights import Rights
from inference import SECOND_TOKENS, Transcript, TranscriptionRequest, known_duration_s

MAX_SOUND_BYTES = 25 * 2**20  # OpenAI's own bound
_LEAST_BYTES_PER_S = 2_000  # of speech that is packed tightly
_MOST_SAID_TOKENS = 25  # in a second, by whoever speaks fast in a language of many tokens


@dataclass(frozen=True, slots=True)
class SoundFile:
    """A file without a name on the disk: it is gone with whoever holds it, however that ends."""

    file: BinaryIO

    @property
    def path(self) -> Path:
        """Where it can be opened anew, as long as it is held."""
        return Path(f"/proc/self/fd/{self.file.fileno()}")

    def opened(self) -> BinaryIO:
        return self.path.open("wb")


@contextmanager
def sound_file() -> Iterator[SoundFile]:
    with TemporaryFile() as file:
        yield SoundFile(file)


async def transcribe(rights: Rights, request: TranscriptionRequest) -> Transcript:
    """What is said. Raises EngineError, ChatError or ApiError."""
    if is_draining():
        raise ShuttingDown
    rights.require_model(request.model, "transcription")
    if request.prompt:
        told = [request.prompt]
        (prompt,) = await fit_to_leave(rights, request.model, told, "input", param="prompt")
        request = replace(request, prompt=prompt)
    async with billed(rights, request.model, most_tokens=[_most_tokens(request)]) as bill:
        transcript = await engine().transcribe(request)
        usage = transcript.usage
        bill.usage = RunUsage(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
    return transcript


def _most_tokens(request: TranscriptionRequest) -> int:
    path = request.sound.path
    duration_s = known_duration_s(request.sound) or path.stat().st_size / _LEAST_BYTES_PER_S
    return int(duration_s * (SECOND_TOKENS + _MOST_SAID_TOKENS)) + len(request.prompt)
