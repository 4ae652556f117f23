"""What a model that sees is shown of pictures that were attached to questions: the pictures."""

import base64
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from chat.db import in_db
from chat.document_view import Viewed
from chat.kept import Kept
from chat.off_loop import off_loop_for_pictures
from chat.prompt_plan import PromptPlan
from chat.sources import Sources
from inference import Image, InvalidParameter, image_size
from retrieval.models import Version
from retrieval.parsing import Unreadable, picture

logger = logging.getLogger(__name__)

MOST_IMAGES = 20  # of a prompt: the newest ones
MAX_SIDE_PX = 1568  # what is larger, servers make smaller


_kept: Kept[UUID, Image] = Kept(32 * 2**20, lambda image: len(image.url))
"""Images that were drawn for a prompt: the next one shows them again. By version, which never changes.
Whether somebody may see one is asked each time, before it is looked for here."""


async def seen(plan: PromptPlan) -> dict[UUID, Image]:
    """By document, the pictures among what was attached to the questions that the plan shows. In the
    scope of the user. What is gone, may not be read any more, is damaged or a mere strip is not seen."""
    attached = dict.fromkeys(id_ for one in reversed(plan.shown) for id_ in one.attached)
    return await images_among(attached)


async def images_among(documents: Iterable[UUID]) -> dict[UUID, Image]:
    """By document, the pictures among some, up to MOST_IMAGES of the first. As `seen`."""
    attached = list(documents)
    if not attached:
        return {}
    pictures = await in_db(_pictures_among)(attached)
    found: dict[UUID, Image] = {}
    for id_ in [id_ for id_ in attached if id_ in pictures][:MOST_IMAGES]:
        if (image := await _image_of(pictures[id_])) is not None:
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


def _pictures_among(documents: Iterable[UUID]) -> dict[UUID, Viewed]:
    """By document the version to show: what is found of it, else its newest."""
    rows = Version.objects.filter(document__in=list(documents)).select_related("document")
    chosen: dict[UUID, Viewed] = {}
    for row in rows.defer("text", "staged").order_by("number"):
        viewed, live = Viewed(row.document, row), row.document.live_version
        if live in (None, row.pk) and viewed.kind == "image":
            chosen[row.document.pk] = viewed
    return chosen


async def _image_of(viewed: Viewed) -> Image | None:
    if (kept := _kept.find(viewed.version.pk)) is not None:
        return kept
    try:
        image = await off_loop_for_pictures(_drawn, viewed.path)
    except (OSError, Unreadable, InvalidParameter) as error:
        logger.warning("a picture cannot be shown to a model: %s", error)
        return None
    _kept.keep(viewed.version.pk, image)
    return image


def _drawn(path: Path) -> Image:
    """Raises Unreadable, OSError, and InvalidParameter for what no model here looks at: a chat that
    showed it would have no answer any more."""
    image = Image(jpeg_url(path))
    image_size(image)
    return image


def jpeg_url(path: Path) -> str:
    """A picture as models are shown it, as a data URL, by the process that reads hostile files. Raises
    Unreadable, OSError."""
    jpeg = picture(path, 1, MAX_SIDE_PX, for_model=True).data
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
