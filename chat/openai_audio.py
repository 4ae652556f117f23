"""/v1/audio: sound in, text out, and the other way round. Source: OpenAI's API description.

The sound is kept for no longer than it takes, and nothing of it is in the ledger but how much it was.
"""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router

from chat import transcribing
from chat.api_errors import ApiError
from chat.audio_schemas import SpeechIn, TranscriptionIn, TranslationIn
from chat.form_bodies import read_form
from chat.off_loop import off_loop_for_files
from chat.openai_uploads import Limit, Received, receive_form, refuse_sessions
from chat.rights import rights_of
from chat.speaking import spoken
from chat.transcribing import MAX_SOUND_BYTES, SoundFile, sound_file
from chat.transcript_formats import written
from inference import Caller, Sound, SpeechRequest, Task, TranscriptionRequest

router = Router()

_HINT = "Send the sound as multipart/form-data, with the fields file and model."


def _form(**more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "file": {"type": "string", "format": "binary"},
        "model": {"type": "string"},
        "prompt": {"type": "string"},
        "response_format": {"enum": ["json", "text", "srt", "verbose_json", "vtt"]},
        "temperature": {"type": "number", "minimum": 0, "maximum": 1},
    }
    schema = {"type": "object", "required": ["file", "model"], "properties": fields | more}
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    }


_TIMES = {"type": "array", "items": {"enum": ["word", "segment"]}}


@router.post(
    "/transcriptions",
    openapi_extra=_form(language={"type": "string"}, timestamp_granularities=_TIMES),
)
async def create_transcription(request: HttpRequest) -> HttpResponseBase:
    """What is said in a sound file, as text."""
    return await _written_down(request, TranscriptionIn, "transcribe")


@router.post("/translations", openapi_extra=_form())
async def create_translation(request: HttpRequest) -> HttpResponseBase:
    """What is said in a sound file, in English."""
    return await _written_down(request, TranslationIn, "translate")


@router.post("/speech")
async def create_speech(request: HttpRequest, data: SpeechIn) -> HttpResponseBase:
    """A text as sound, as it comes. Raises what becomes OpenAI's errors."""
    asked = SpeechRequest(
        model=data.model,
        text=data.input,
        voice=data.voice_name,
        form=data.response_format,
        speed=data.speed,
        instructions=data.instructions,
    )
    return await spoken(rights_of(request), asked, "input")


async def _written_down(
    request: HttpRequest, kind: type[TranslationIn], task: Task
) -> HttpResponseBase:
    rights = rights_of(request)
    refuse_sessions(request, "Send sound")
    with sound_file() as file:
        received = await off_loop_for_files(_receive, request, file)
        data = read_form(kind, received.fields)
        user = rights.user
        asked = TranscriptionRequest(
            model=data.model,
            sound=Sound(file.path, received.name, received.media_type),
            task=task,
            language=(getattr(data, "language", None) or "").partition("-")[0],
            prompt=data.prompt,
            temperature=data.temperature,
            has_segments=data.has_segments,
            has_words=data.has_words,
            caller=Caller(str(user.pk), user.tier.weight, rights.priority),
        )
        transcript = await transcribing.transcribe(rights, asked)
    return written(
        transcript,
        data.response_format,
        task,
        has_segments=data.has_segments,
        has_words=data.has_words,
    )


def _receive(request: HttpRequest, file: SoundFile) -> Received:
    message = f"file: sound may have {MAX_SOUND_BYTES // 2**20} MiB."
    limit = Limit(MAX_SOUND_BYTES, ApiError(413, "content_too_large", message, "file"))
    return receive_form(request, file.opened, limit, hint=_HINT)
