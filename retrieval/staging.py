"""Reading a version's file: its text and its passages, which then wait for their vectors.

In a task worker and in the system's scope. The file is parsed in a process of its own (parsing/), so one
that is hostile takes nothing down; one that cannot be read fails alone, with a reason in words.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from retrieval import document_files, version_leases
from retrieval.chunking import ChunkSettings, chunks
from retrieval.indexing import Passage
from retrieval.models import Chunk, Version, VersionState
from retrieval.parsing import Limits, Parsed, Unreadable, parse
from retrieval.version_leases import LeaseLost

logger = logging.getLogger(__name__)

_GONE = "The file is gone."


def read(
    version_id: UUID,
    me: str,
    count_tokens: Callable[[str], int],
    limits: Limits,
    settings: ChunkSettings,
) -> bool:
    """Bring a version from QUEUED to EMBEDDING, or to FAILED. False: there is nothing to do, or somebody
    else does it."""
    version = version_leases.claim(version_id, me, VersionState.QUEUED, VersionState.PARSING)
    if version is None:
        return False
    try:
        version_leases.update(version.pk, me, state=VersionState.PARSING)
        with version_leases.kept(version.pk, me):
            _read(version, me, count_tokens, limits, settings)
    except LeaseLost:
        logger.warning("version %s is gone, or another process reads it", version.pk)
    return True


def _read(
    version: Version,
    me: str,
    count_tokens: Callable[[str], int],
    limits: Limits,
    settings: ChunkSettings,
) -> None:
    path = document_files.path_of(version.pk)
    try:
        parsed = parse(path, name=version.document.name, limits=limits)
    except Unreadable as error:
        return version_leases.hand_on(version.pk, me, VersionState.FAILED, reason=error.message)
    except FileNotFoundError:
        return version_leases.hand_on(version.pk, me, VersionState.FAILED, reason=_GONE)
    made = chunks(parsed, count_tokens, settings)
    version_leases.hand_on(
        version.pk,
        me,
        VersionState.EMBEDDING,
        **_facts(parsed),
        num_chunks=len(made),
        num_embedded=0,
        staged=[
            [one.start, one.end, one.first_page, one.last_page, one.num_tokens, one.context]
            for one in made
        ],
    )


def _facts(parsed: Parsed) -> dict[str, Any]:
    return {
        "text": parsed.text,
        # What it is, is what is in it, and neither its name nor what a server has called it.
        "media_type": parsed.media_type[:100],
        "title": parsed.title,
        "language": parsed.language[:35],
        "notes": list(parsed.notes),
        "pages": [
            [page.start, page.end, page.label, page.width_pt, page.height_pt]
            for page in parsed.pages
        ],
    }


def staged(version: Version) -> list[Passage]:
    """The passages that wait for their vectors."""
    return [
        Passage(
            text=version.text[start:end],
            start=start,
            end=end,
            first_page=first_page,
            last_page=last_page,
            context=context,
            num_tokens=num_tokens,
        )
        for start, end, first_page, last_page, num_tokens, context in version.staged
    ]


def to_embed(passages: Sequence[Passage | Chunk]) -> list[str]:
    """What a model reads of each: its context stands in front."""
    return [f"{one.context}\n{one.text}" if one.context else one.text for one in passages]
