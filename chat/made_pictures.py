"""Pictures that answers have drawn: which a message tells of, and which of them are kept.

Each is an attached document of the chat's owner (attached_files.py), which lives as long as a message
names it. So an answer names in its `sources` what its calls of the tool have brought.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.parts import Parts, with_results
from chat.tools import CREATE_IMAGE
from chat.tools.create_image import SIZES, value_in
from retrieval.models import Document

WIDTHS_PX = (800, 1600)
_SIDES_PX = range(1, 100_000)


@dataclass(frozen=True, slots=True)
class MadePicture:
    """As the tool's result tells it, which anybody may have written who has brought the chat along."""

    id: UUID
    prompt: str
    name: str
    width_px: int
    height_px: int

    @property
    def shape(self) -> str:
        """Of made-picture.css; made-picture.js says the same."""
        ratio = self.width_px / self.height_px
        return "landscape" if ratio > 1.1 else "portrait" if ratio < 0.9 else "square"


def made_in(parts: Parts) -> dict[str, MadePicture]:
    """By the id of the call that has drawn it."""
    drawn = _drawn(parts)
    results = [part for part in parts if part["type"] == "tool_result" and part["id"] in drawn]
    found = ((part["id"], _picture(value_in(part["content"]))) for part in results)
    return {id_: picture for id_, picture in found if picture is not None}


def _drawn(parts: Parts) -> set[str]:
    """Ids of calls of the tool. One that another call has as well, as a chat from elsewhere may tell,
    is none."""
    calls = [(part["id"], part["name"]) for part in parts if part["type"] == "tool_call"]
    others = {id_ for id_, name in calls if name != CREATE_IMAGE.name}
    return {id_ for id_, _ in calls} - others


def _picture(value: dict[str, Any]) -> MadePicture | None:
    try:
        id_ = UUID(value["picture"])
    except (KeyError, ValueError):
        return None
    prompt, name = (str(value.get(key) or "") for key in ("prompt", "name"))
    sides = [value.get(key) for key in ("width", "height")]
    if not all(type(side) is int and side in _SIDES_PX for side in sides):
        sides = list(map(int, SIZES["square"].split("x")))
    return MadePicture(id_, prompt, name, *sides)  # type: ignore[arg-type]


def kept(owner_id: Any, ids: Iterable[UUID]) -> dict[UUID, str]:
    """Of these, what is kept of the owner's own, with its name: a forged result shows nothing else. In
    a scope that sees them."""
    rows = Document.objects.filter(
        pk__in=list(ids),
        is_attached=True,
        collection__is_for_chats=True,
        collection__owner_id=owner_id,
    )
    return dict(rows.values_list("pk", "name"))


def kept_of(owner_id: Any, parts: Iterable[Parts]) -> set[UUID]:
    """Of the pictures that parts of many messages tell of those that are kept. Asks the database only
    where there are some."""
    wanted = {picture.id for each in parts for picture in made_in(each).values()}
    return set(kept(owner_id, wanted)) if wanted else set()


def sources_of(owner_id: Any, parts: Parts) -> dict[str, Any] | None:
    """What an answer of these parts names. Asks the database only where something was drawn."""
    ids = [picture.id for picture in made_in(parts).values()]
    names = kept(owner_id, ids) if ids else {}
    named = [{"id": str(id_), "name": names[id_]} for id_ in dict.fromkeys(ids) if id_ in names]
    return {"collections": [], "documents": named} if named else None


def without_unmade(parts: Parts) -> Parts:
    """The parts without calls that have drawn nothing, and without their results."""
    unmade = _drawn(parts) - made_in(parts).keys()
    return [part for part in parts if part.get("id") not in unmade]


def on_page(parts: Parts, there: Container[UUID], url: Callable[[UUID, int], str]) -> Parts:
    """The parts of `with_results` with the `picture` of each call that has drawn one: `src` and `srcset`
    where it is still there. `url` is where one is shown, some pixels wide."""
    made = made_in(parts)
    shown = {
        id_: {
            "prompt": one.prompt,
            "width": one.width_px,
            "height": one.height_px,
            "shape": one.shape,
            "src": url(one.id, WIDTHS_PX[0]),
            "srcset": ", ".join(f"{url(one.id, width)} {width}w" for width in WIDTHS_PX),
            "large": url(one.id, WIDTHS_PX[-1]),
            "is_there": one.id in there,
        }
        for id_, one in made.items()
    }
    return [
        part | {"picture": shown[part["id"]]} if part.get("id") in shown else part
        for part in with_results(parts)
    ]
