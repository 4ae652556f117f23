"""What of all that somebody may read is searched: collections, documents, tags, types and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from retrieval.file_names import composed


@dataclass(frozen=True, slots=True)
class SearchScope:
    """None: all of them; of these collections, and these documents beside them. They have to have all
    of the tags, and one of the media types."""

    collections: Sequence[UUID] | None = None
    documents: Sequence[UUID] | None = None
    tags: Sequence[str] = ()
    media_types: Sequence[str] = ()
    after: datetime | None = None
    before: datetime | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether of the collections and documents not all is searched."""
        is_timed = self.after is not None or self.before is not None
        return bool(self.tags or self.media_types or is_timed)

    def conditions(self, row: str) -> str:
        """SQL for the parameters below: of `row`, which has a collection, and its document `d`."""
        found = []
        places = []
        if self.collections is not None:
            places.append(f"{row}.collection_id = ANY(%(collections)s)")
        if self.documents is not None:
            places.append("d.id = ANY(%(documents)s)")
        if places:
            found.append(f"({' OR '.join(places)})")
        if self.tags:
            found.append("d.tags @> %(tags)s::varchar[]")
        if self.media_types:
            found.append("d.media_type = ANY(%(media_types)s)")
        if self.after is not None:
            found.append("d.created_at >= %(after)s")
        if self.before is not None:
            found.append("d.created_at < %(before)s")
        return "".join(f" AND {condition}" for condition in found)

    def parameters(self) -> dict[str, Any]:
        return {
            "collections": None if self.collections is None else list(self.collections),
            "counted": None
            if self.collections is None or self.documents is not None
            else list(self.collections),
            "documents": None if self.documents is None else list(self.documents),
            "tags": list(map(composed, self.tags)),
            "media_types": list(self.media_types),
            "after": self.after,
            "before": self.before,
        }
