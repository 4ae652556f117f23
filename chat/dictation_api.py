"""Speech in the chat: models write down what is dictated, and read aloud what was answered."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from ninja import Router
from pydantic import Field

from chat.admission import check_requests
from chat.api_errors import ApiError
from chat.audio_schemas import Language
from chat.errors import BadRequest
from chat.off_loop import off_loop_for_files
from chat.openai_schemas import Strict
from chat.request_bodies import pieces_of
from chat.rights import Rights, rights_of
from chat.speaking import spoken
from chat.transcribing import MAX_SOUND_BYTES, SoundFile, sound_file, transcribe
from inference import Caller, Sound, SpeechRequest, TranscriptionRequest

router = Router()

_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/transcriptions", openapi_extra=_BODY)
async def create_dictation(
    request: HttpRequest,
    model: str = "",
    language: Language | None = None,
    name: Annotated[str, Field(max_length=255)] = "speech.wav",
) -> dict[str, Any]:
    """The body is the sound; without a `model` the first one writes it down. Nothing is kept."""
    rights = rights_of(request)
    model = model or model_for(rights, "transcription")
    await check_requests(rights)
    with sound_file() as file:
        await off_loop_for_files(_store, request, file)
        asked = TranscriptionRequest(
            model=model,
            sound=Sound(file.path, name, request.content_type or "audio/wav"),
            language=(language or "").partition("-")[0],
            caller=Caller(str(rights.user.pk), rights.user.tier.weight),
        )
        transcript = await transcribe(rights, asked)
    return {
        "text": transcript.text,
        "language": transcript.language,
        "duration_s": transcript.duration_s,
    }


class SpeechText(Strict):
    """A sentence or some of an answer."""

    text: Annotated[str, Field(min_length=1, max_length=4_096)]
    model: str = ""
    voice: Annotated[str, Field(max_length=100)] = ""


@router.post("/speech")
async def read_aloud(request: HttpRequest, data: SpeechText) -> HttpResponseBase:
    """What was answered as sound (MP3), by the first model that speaks if none is named."""
    rights = rights_of(request)
    model = data.model or model_for(rights, "speech")
    await check_requests(rights)
    return await spoken(rights, SpeechRequest(model, data.text, data.voice), "output")


def model_for(rights: Rights, kind: Literal["transcription", "speech"]) -> str:
    """Raises ApiError where there is none for this person."""
    if models := rights.models(kind):
        return models[0].spec.name
    if kind == "speech":
        raise ApiError(404, "not_found", gettext("There is no model here that speaks."))
    raise ApiError(404, "not_found", gettext("There is no model here that writes speech down."))


def _store(request: HttpRequest, file: SoundFile) -> None:
    """Raises TooLarge or BadRequest."""
    with file.opened() as target:
        target.writelines(pieces_of(request, MAX_SOUND_BYTES))
        is_empty = not target.tell()
    if is_empty:
        raise BadRequest(gettext("The file is empty."))
