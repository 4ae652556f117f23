"""How an answer draws: with the rights that the chat's owner has at that moment, and into their files.

What comes back is another server's: it is looked at by the process that reads hostile files before it is
kept, and what that cannot draw anew is no picture.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model

from chat.api_errors import ApiError
from chat.db import in_db
from chat.document_uploads import Place, keep
from chat.drawing import draw, model_for_pictures
from chat.errors import ChatError
from chat.ids import uuid7
from chat.models import Conversation, Generation
from chat.off_loop import off_loop, off_loop_for_pictures
from chat.pricing import cost_of_usage, price_of
from chat.rights import Rights, usable_key
from chat.seeing import jpeg_url
from chat.shielded import to_its_end
from chat.tools import CREATE_IMAGE, Tool, ToolFailed
from chat.tools.create_image import SIZES, asked_in, told_in
from inference import (
    EngineError,
    Image,
    InvalidParameter,
    Picture,
    PictureRequest,
    Usage,
    image_size,
)
from retrieval import document_files, documents, room
from retrieval.documents import Brought
from retrieval.errors import NoRoom, RetrievalError
from retrieval.parsing import Unreadable

MAX_PER_ANSWER = 4
"""Each is paid for: a model that goes round in circles stops there."""
MAX_TOLD_CHARS = 2_500
"""Of the prompt in a result: escaped six times as long, it still fits."""
_MAX_STEM_CHARS = 60
_NO_PICTURE = "the server of pictures has sent nothing that can be shown as a picture"


def bound(
    tools: Sequence[Tool], conversation: Conversation, generation: Generation
) -> tuple[Tool, ...]:
    """The tools, with the one that draws bound to the chat's owner, in whose scope it runs."""
    num_asked = 0
    cost: dict[
        str, Any
    ] = {}  # of the last one, which neither the model nor a reader of a link is told

    async def run(arguments: dict[str, Any]) -> str:
        nonlocal num_asked
        prompt, size = asked_in(arguments)
        num_asked += 1
        if num_asked > MAX_PER_ANSWER:
            raise ToolFailed(
                f"an answer has {MAX_PER_ANSWER} pictures at most; the user may ask for more"
            )
        try:
            rights = await in_db(_rights_now)(conversation.owner_id, generation.params)
            request = PictureRequest(model_for_pictures(rights), prompt, size=SIZES[size])
            found = await draw(rights, request, within=generation.pk)
            picture = found.pictures[0]
            cost.clear()
            cost.update(await in_db(_cost)(request.model, found.usage))
            # Whoever stops it now has paid for it: it is kept whole or not at all.
            kept = await to_its_end(_keep(rights, prompt, picture))
        except (ApiError, ChatError, EngineError, RetrievalError) as error:
            raise ToolFailed(str(error)) from None
        shown = (picture.revised_prompt or prompt)[:MAX_TOLD_CHARS]
        kept |= {"prompt": shown, "size": request.size, "model": request.model}
        if picture.revised_prompt:
            kept["rewritten"] = True
        return json.dumps(kept, ensure_ascii=False)

    own = replace(CREATE_IMAGE, run=run, facts_of=lambda result: told_in(result) | cost)
    return tuple(own if one.name == CREATE_IMAGE.name else one for one in tools)


def without(names: Sequence[str]) -> tuple[str, ...]:
    """Names of tools where nothing is kept."""
    return tuple(name for name in names if name != CREATE_IMAGE.name)


def _rights_now(owner_id: Any, params: dict[str, Any]) -> Rights:
    """Of a run that a program has begun, those of its key, as far as there is still one. Raises
    ToolFailed, NoRoom."""
    user = get_user_model()._default_manager.filter(pk=owner_id, is_active=True).first()
    if user is None:
        raise ToolFailed("the user is no longer here")
    api_key, key_id = None, params.get("api_key")
    if key_id is not None:
        api_key = usable_key(user, key_id)
        if api_key is None:
            raise ToolFailed("the key that this was asked with is gone")
    rights = Rights(user, api_key, is_background=params.get("priority") == "background")
    if not rights.may_draw:
        raise ToolFailed("there is no model for pictures any more")
    if not room.room_of(user.pk):
        raise NoRoom(settings.MAX_DOCUMENTS_BYTES)  # before it is paid for
    return rights


def _cost(model: str, usage: Usage) -> dict[str, Any]:
    """Nothing where the model has no price."""
    price = price_of(model)
    return {"cost": cost_of_usage(price, usage)} if price else {}


async def _keep(rights: Rights, prompt: str, picture: Picture) -> dict[str, Any]:
    """Raises ToolFailed, RetrievalError."""
    version_id = uuid7()
    path = document_files.path_of(version_id)
    try:
        digest = await off_loop(_written, path, picture.content)
        height_px, width_px = await off_loop_for_pictures(_size_of, path)
        brought = Brought(
            version_id,
            _name(prompt, picture.media_type),
            len(picture.content),
            digest,
            media_type=picture.media_type,
            has_words=False,
        )
        id_, name = await in_db(_row)(rights, brought)
    except (Unreadable, InvalidParameter):
        document_files.remove(version_id)
        raise ToolFailed(_NO_PICTURE) from None
    except OSError:
        document_files.remove(version_id)
        raise ToolFailed("the server has no room for the picture") from None
    except BaseException:
        document_files.remove(version_id)
        raise
    return {"picture": str(id_), "name": name, "width": width_px, "height": height_px}


def _written(path: Path, content: bytes) -> str:
    if len(content) > documents.max_file_bytes():
        raise ToolFailed("the server of pictures has sent one that is too large")
    with path.open("xb") as file:
        file.write(content)
        document_files.make_safe(file)
    return sha256(content).hexdigest()


def _size_of(path: Path) -> tuple[int, int]:
    """Height and width, as it is drawn anew. Raises Unreadable, OSError, InvalidParameter."""
    return image_size(Image(jpeg_url(path)))


def _row(rights: Rights, brought: Brought) -> tuple[UUID, str]:
    row = keep(rights.user, Place(is_for_chats=True, is_new=True), brought)
    return row.pk, row.name


def _name(prompt: str, media_type: str) -> str:
    """Its first words. A name ends where a path would go on."""
    form = media_type.removeprefix("image/").replace("jpeg", "jpg")
    words = "".join(one if one.isprintable() and one not in "/\\" else " " for one in prompt)
    stem = " ".join(words.split())
    if len(stem) > _MAX_STEM_CHARS:
        cut = stem[:_MAX_STEM_CHARS]
        stem = cut.rpartition(" ")[0] or cut
    stem = stem.strip(" .,;:")
    with suppress(RetrievalError):
        return documents.checked_name(f"{stem}.{form}" if stem else f"picture.{form}")
    return f"picture.{form}"
