"""Excerpts: what is shown of documents, a span of a version's text each. Synchronous.

Kept is where they are and never what they say: their text is read anew each time, in the scope of the
reader. So what is deleted, or no longer shared, is gone from every prompt at once.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection

from retrieval.models import Chunk, Version

_TEXTS = """
    SELECT given.n, substr(v.text, given.first + 1, given.size) FROM unnest(
        %(versions)s::uuid[], %(starts)s::int[], %(sizes)s::int[]
    ) WITH ORDINALITY AS given (version, first, size, n)
    JOIN retrieval_version v ON v.id = given.version
"""
_LABELS = """
    SELECT given.n, coalesce(nullif(v.pages -> (page - 1) ->> 2, ''), page::text)
    FROM unnest(%(versions)s::uuid[], %(pages)s::int[]) WITH ORDINALITY AS given (version, page, n)
    JOIN retrieval_version v ON v.id = given.version WHERE jsonb_array_length(v.pages) > 1
"""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`number` is what it is cited by. Pages count from 1; `page_label` is what the first one is called,
    "" where the document has one page only. `chunks` are the passages that it was made of. `is_sample`:
    the first of those that stand for a document in which nothing fits the question."""

    number: int
    document: str
    version: str
    collection: str
    name: str
    start: int
    end: int
    first_page: int = 1
    last_page: int = 1
    page_label: str = ""
    context: str = ""
    chunks: tuple[int, ...] = ()
    is_sample: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "chunks": list(self.chunks)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Excerpt":
        return cls(**{**value, "chunks": tuple(value["chunks"])})


def excerpts_of(chunks: Sequence[Chunk], first_number: int = 1) -> list[Excerpt]:
    """Neighbours become one; in the order of the best of each. `chunks` come with their documents."""
    groups: list[list[Chunk]] = []
    for chunk in sorted(chunks, key=lambda one: (str(one.version_id), one.start)):
        last = groups[-1] if groups else None
        is_next = last and last[-1].version_id == chunk.version_id
        if last and is_next and chunk.number <= last[-1].number + 1:
            last.append(chunk)
        else:
            groups.append([chunk])
    rank = {chunk.pk: place for place, chunk in enumerate(chunks)}
    groups.sort(key=lambda group: min(rank[chunk.pk] for chunk in group))
    return _excerpts(groups, first_number)


def excerpt_of_each(chunks: Sequence[Chunk]) -> list[Excerpt]:
    """Neighbours as well, in the order given, numbered from 1. `chunks` come with their documents."""
    return _excerpts([[chunk] for chunk in chunks], 1)


def _excerpts(groups: Sequence[list[Chunk]], first_number: int) -> list[Excerpt]:
    labels = _page_labels([group[0] for group in groups])
    numbers = range(first_number, first_number + len(groups))
    return [_excerpt(*given) for given in zip(groups, numbers, labels, strict=True)]


def _page_labels(chunks: Sequence[Chunk]) -> list[str]:
    given: dict[str, Any] = {
        "versions": [chunk.version_id for chunk in chunks],
        "pages": [chunk.first_page for chunk in chunks],
    }
    with connection.cursor() as cursor:
        cursor.execute(_LABELS, given)
        labels = dict(cursor.fetchall())
    return [labels.get(n) or "" for n in range(1, len(chunks) + 1)]


def _excerpt(group: list[Chunk], number: int, page_label: str) -> Excerpt:
    first, last = group[0], group[-1]
    return Excerpt(
        number=number,
        document=str(first.document_id),
        version=str(first.version_id),
        collection=str(first.collection_id),
        name=first.document.name,
        start=first.start,
        end=max(chunk.end for chunk in group),
        first_page=first.first_page,
        last_page=last.last_page,
        page_label=page_label,
        context=first.context,
        chunks=tuple(chunk.pk for chunk in group),
    )


def from_first_words(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """Those whose `start` was moved, without white space in front, and on the page where they begin now.
    What has no word is left out."""
    versions = Version.objects.filter(pk__in={one.version for one in excerpts})
    pages = {str(pk): pages for pk, pages in versions.values_list("pk", "pages")}
    found = []
    for one, text in zip(excerpts, texts_of(excerpts), strict=True):
        if text is not None and text.strip():
            start = one.start + len(text) - len(text.lstrip())
            found.append(_on_page(replace(one, start=start), pages[one.version]))
    return found


def _on_page(one: Excerpt, pages: Sequence[Sequence[Any]]) -> Excerpt:
    """`pages` are rows of start, end, label and more (Version.pages)."""
    if len(pages) < 2:
        return one
    number = max(1, bisect_right([page[0] for page in pages], one.start))
    return replace(one, first_page=number, page_label=pages[number - 1][2] or str(number))


def told(excerpt: Excerpt, text: str | None) -> Excerpt:
    """As its reader is told of it: of what is gone, or may not be read, nothing that stands in it."""
    return excerpt if text is not None else replace(excerpt, context="", page_label="")


def texts_of(excerpts: Iterable[Excerpt]) -> list[str | None]:
    """What each says, now and to this reader. None: it is gone, or may not be read."""
    given = list(excerpts)
    if not given:
        return []
    parameters: dict[str, Any] = {
        "versions": [UUID(one.version) for one in given],
        "starts": [one.start for one in given],
        "sizes": [one.end - one.start for one in given],
    }
    with connection.cursor() as cursor:
        cursor.execute(_TEXTS, parameters)
        texts = dict(cursor.fetchall())
    return [texts.get(n) for n in range(1, len(given) + 1)]
