"""What a model that sees is shown of pictures that were attached to questions: the pictures."""

import base64
import logging
import mimetypes
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from chat.db import in_db
from chat.off_loop import off_loop_for_pictures
from chat.prompt_plan import PromptPlan
from chat.sources import Sources
from inference import Image
from retrieval import document_files
from retrieval.models import Version
from retrieval.parsing import Unreadable, picture

logger = logging.getLogger(__name__)

MOST_IMAGES = 20  # of a prompt: the newest ones
MAX_SIDE_PX = 1568  # what is larger, servers make smaller
_KEPT_BYTES = 32 * 2**20


class _Kept:
    """Images that were drawn for a prompt: the next one shows them again. By version, which never
    changes.

    Whether somebody may see one is asked each time, before it is looked for here.
    """

    def __init__(self) -> None:
        self._images: OrderedDict[UUID, Image] = OrderedDict()
        self._num_bytes = 0

    def find(self, version_id: UUID) -> Image | None:
        if version_id in self._images:
            self._images.move_to_end(version_id)
        return self._images.get(version_id)

    def keep(self, version_id: UUID, image: Image) -> None:
        if version_id in self._images:
            return
        self._images[version_id] = image
        self._num_bytes += len(image.url)
        while self._num_bytes > _KEPT_BYTES:
            _, oldest = self._images.popitem(last=False)
            self._num_bytes -= len(oldest.url)


_kept = _Kept()


async def seen(plan: PromptPlan) -> dict[UUID, Image]:
    """By document, the pictures among what was attached to the questions that the plan shows. In the
    scope of the user. What is gone, may not be read any more or is damaged is not seen."""
    attached = dict.fromkeys(id_ for one in reversed(plan.shown) for id_ in one.attached)
    if not attached:
        return {}
    versions = await in_db(_pictures_among)(attached)
    found: dict[UUID, Image] = {}
    for id_ in [id_ for id_ in attached if id_ in versions][:MOST_IMAGES]:
        if (image := await _image_of(versions[id_])) is not None:
            found[id_] = image
    return found


def without(sources: Sources | None, documents: Iterable[UUID]) -> Sources | None:
    """What is left to be looked up, where these are seen; None: nothing."""
    if sources is None:
        return None
    gone = set(documents)
    left = tuple(id_ for id_ in sources.picked.documents if id_ not in gone)
    kept = tuple(id_ for id_ in sources.kept if id_ not in gone)
    picked = replace(sources.picked, documents=left)
    return replace(sources, picked=picked, kept=kept) if picked or kept else None


def _pictures_among(documents: Iterable[UUID]) -> dict[UUID, UUID]:
    """Document → the version to show: what is found of it, else its newest."""
    rows = Version.objects.filter(document__in=list(documents)).order_by("number")
    values = rows.values_list(
        "pk", "media_type", "document", "document__name", "document__live_version"
    )
    chosen: dict[UUID, UUID] = {}
    for version_id, media_type, document_id, name, live_version in values:
        kind = media_type or mimetypes.guess_type(name)[0] or ""
        is_shown = live_version is None or live_version == version_id
        if is_shown and kind.startswith("image/"):
            chosen[document_id] = version_id
    return chosen


async def _image_of(version_id: UUID) -> Image | None:
    if (kept := _kept.find(version_id)) is not None:
        return kept
    path = document_files.path_of(version_id)
    try:
        image = await off_loop_for_pictures(_drawn, path)
    except (OSError, Unreadable) as error:
        logger.warning("a picture cannot be shown to a model: %s", error)
        return None
    _kept.keep(version_id, image)
    return image


def _drawn(path: Path) -> Image:
    jpeg = picture(path, 1, MAX_SIDE_PX, for_model=True).data
    return Image(f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}")
