"""/v1/images: pictures of prompts, and of other pictures. Source: OpenAI's API description.

They are kept nowhere: what is made goes to who asked, and what is sent along to the other server.
"""

import base64
from contextlib import ExitStack
from dataclasses import replace
from time import time
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from chat.drawing import draw, model_for_pictures
from chat.form_bodies import read_form
from chat.image_forms import receive_pictures
from chat.image_schemas import ImageEditIn, ImageIn, PromptIn
from chat.off_loop import off_loop, off_loop_for_files
from chat.openai_uploads import refuse_sessions
from chat.rights import Rights, rights_of
from chat.wire import dumps
from inference import Picture, PictureRequest, Pictures, ToldTokens

router = Router()

_FILE = {"type": "string", "format": "binary"}
_EDIT_FORM = {
    "type": "object",
    "required": ["image", "prompt"],
    "properties": {
        "image": {"oneOf": [_FILE, {"type": "array", "items": _FILE, "maxItems": 16}]},
        "mask": _FILE,
        "prompt": {"type": "string"},
        "model": {"type": "string"},
        "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "size": {"type": "string"},
        "quality": {"enum": ["standard", "hd", "low", "medium", "high", "auto"]},
        "background": {"enum": ["transparent", "opaque", "auto"]},
        "output_format": {"enum": ["png", "jpeg", "webp"]},
        "output_compression": {"type": "integer", "minimum": 0, "maximum": 100},
        "input_fidelity": {"enum": ["high", "low"]},
    },
}


@router.post("/generations")
async def create_image(request: HttpRequest, data: ImageIn) -> HttpResponse:
    """Pictures of a prompt. Raises what becomes OpenAI's errors."""
    rights = rights_of(request)
    return await _drawn(rights, _asked(rights, data))


@router.post(
    "/edits",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"multipart/form-data": {"schema": _EDIT_FORM}},
        }
    },
)
async def create_image_edit(request: HttpRequest) -> HttpResponse:
    """Pictures of a prompt and other pictures. Raises what becomes OpenAI's errors."""
    rights = rights_of(request)
    refuse_sessions(request, "Send pictures")
    with ExitStack() as held:
        received = await off_loop_for_files(receive_pictures, request, held)
        asked = _asked(rights, read_form(ImageEditIn, received.fields))
        asked = replace(asked, given=received.given, mask=received.mask)
        return await _drawn(rights, asked)


def _asked(rights: Rights, data: PromptIn) -> PictureRequest:
    return data.request(data.model or model_for_pictures(rights))


async def _drawn(rights: Rights, asked: PictureRequest) -> HttpResponse:
    found = await draw(rights, asked)
    # In a thread: ten pictures are megabytes of letters.
    return HttpResponse(await off_loop(_body, found), content_type="application/json")


def _body(found: Pictures) -> bytes:
    """Put together picture by picture: one call of the encoder for all would stop every thread."""
    kinds = {one.media_type for one in found.pictures}
    told = {
        "output_format": kinds.pop().removeprefix("image/") if len(kinds) == 1 else "",
        "size": found.size,
        "quality": found.quality,
        "background": found.background,
    }
    head: dict[str, Any] = {"created": int(time())}
    head |= {name: value for name, value in told.items() if value}
    if found.told is not None:
        head["usage"] = _usage(found.told)
    items = ",".join(dumps(_item(picture)) for picture in found.pictures)
    return f'{dumps(head)[:-1]},"data":[{items}]}}'.encode()


def _item(picture: Picture) -> dict[str, str]:
    item = {"b64_json": base64.b64encode(picture.content).decode()}
    return item | {"revised_prompt": picture.revised_prompt} if picture.revised_prompt else item


def _usage(told: ToldTokens) -> dict[str, Any]:
    return {
        "total_tokens": told.prompt + told.written,
        "input_tokens": told.prompt,
        "input_tokens_details": {"text_tokens": told.text, "image_tokens": told.images},
        "output_tokens": told.written,
    }
