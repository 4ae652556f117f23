"""Looking up a question in documents, before a model is asked."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Exists, F, OuterRef, QuerySet, Sum

from chat.db import in_db
from chat.document_prompt import NOTHING, documents_text, rows_of, unread_rows
from chat.document_search import Search, find
from chat.embedder import relevance_of
from chat.events import Found
from chat.shielded import in_background
from chat.sources import Picked, Sources
from inference import Caller
from retrieval.excerpts import Excerpt, excerpt_of_each, excerpts_of, from_first_words, texts_of
from retrieval.expiry import note_use
from retrieval.models import UNFINISHED, Chunk, Document, Version
from retrieval.scopes import SearchScope
from retrieval.searching import Candidate, passages
from retrieval.selecting import Selection, fits, select
from retrieval.vectors import similarity

logger = logging.getLogger(__name__)

NUM_RERANKED = 30
_MAX_QUERY_CHARS = 2_000
_MAX_CHARS_PER_TOKEN = 8

CountTokens = Callable[[str], int]


async def look_up(
    sources: Sources, caller: Caller, count: CountTokens, room_tokens: int
) -> Found | None:
    """In the scope of the user. `count` are the answering model's tokens, as is the room. None: nothing
    was picked, and in the documents of questions before nothing fits this one."""
    picked = sources.picked.documents
    unread = await in_db(_num_unread)(picked) if picked else (0, 0)
    room_tokens -= count(_unread_text(*unread))
    found = await _looked_up(sources, caller, count, room_tokens)
    in_background(_note(sources))  # the answer begins meanwhile
    return found and replace(found, num_waiting=unread[0], num_failed=unread[1])


def _num_unread(documents: Sequence[UUID]) -> tuple[int, int]:
    """How many of them have not been read yet, and how many could not be."""
    unread = Document.objects.filter(pk__in=documents, live_version=None)
    waiting = Version.objects.filter(document=OuterRef("pk"), state__in=UNFINISHED)
    are_waiting = list(unread.values_list(Exists(waiting), flat=True))
    return sum(are_waiting), len(are_waiting) - sum(are_waiting)


def _unread_text(num_waiting: int, num_failed: int) -> str:
    rows = unread_rows(num_waiting, num_failed)
    return "\n\n".join(("", NOTHING, *rows)) if rows else ""


async def _looked_up(
    sources: Sources, caller: Caller, count: CountTokens, room_tokens: int
) -> Found | None:
    whole = await in_db(_whole)(sources, count, room_tokens)
    documents = () if whole else sources.picked.documents
    searched = replace(sources.picked, documents=(*documents, *sources.kept))
    if not searched:
        return _found_whole(sources, whole)
    search = await _search(sources, searched, caller)
    relevance = await _relevance(search, caller)
    return await in_db(_select)(sources, search, relevance, count, room_tokens, whole)


async def _note(sources: Sources) -> None:
    try:
        await in_db(_note_use)(sources)
    except DatabaseError:
        logger.exception("the use of collections could not be noted")


def _note_use(sources: Sources) -> None:
    """Of collections that were picked, and of those that documents are in."""
    documents = Document.objects.filter(pk__in=(*sources.picked.documents, *sources.kept))
    within = documents.values_list("collection", flat=True).distinct()
    note_use((*sources.picked.collections, *within))


def passages_of(found: Found) -> tuple[str, ...]:
    """What a model reads of what was found: its text as it is now, and to this reader."""
    given = [Excerpt.from_json(value) for value in found.excerpts]
    rows = rows_of(given, texts_of(given))
    unread = unread_rows(found.num_waiting, found.num_failed)
    return (*(rows or (NOTHING,)), *unread) if unread else rows


def most_tokens(picked: Picked, kept: Sequence[UUID], room_tokens: int) -> int:
    """What a question's documents, and those of questions before, take at most: what is small is shown
    whole, and has no more tokens than characters. In the scope of the user."""
    if picked.collections:
        return room_tokens
    num_chars = _num_chars(_live_chunks((*picked.documents, *kept)))
    unread = _unread_text(*_num_unread(picked.documents))
    return min(room_tokens, num_chars + len(documents_text((), ())) + len(unread))


# --- all of it ------------------------------------------------------------------------------------


def _whole(sources: Sources, count: CountTokens, room_tokens: int) -> tuple[Excerpt, ...]:
    """Small documents that were picked are shown whole, whatever else is looked for; none of them where
    they are too large together, or somebody does not want all of it."""
    picked = sources.picked
    if sources.without:
        return ()
    live = _live_chunks(picked.documents)
    num_chars = _num_chars(live)
    if not 0 < num_chars <= _MAX_CHARS_PER_TOKEN * room_tokens:
        return ()  # a few large ones would be some hundred megabytes
    order = {id_: place for place, id_ in enumerate(picked.documents)}
    chunks = sorted(live, key=lambda row: (order[row.document_id], row.number))
    excerpts = [replace(one, chunks=()) for one in _cut_overlaps(chunks, sources.first_number)]
    fits_in = count(documents_text(excerpts, texts_of(excerpts))) <= room_tokens
    return tuple(excerpts) if fits_in else ()


def _found_whole(sources: Sources, whole: Sequence[Excerpt]) -> Found:
    return Found(sources.question, tuple(one.to_json() for one in whole), is_whole=True)


def _num_chars(chunks: "QuerySet[Chunk]") -> int:
    return chunks.aggregate(num=Sum(F("end") - F("start")))["num"] or 0


def _live_chunks(documents: Sequence[UUID]) -> "QuerySet[Chunk]":
    rows = Chunk.objects.filter(document__in=documents)
    live = rows.filter(version=F("document__live_version"))
    return live.select_related("document").defer("terms", "text")


def _cut_overlaps(chunks: Sequence[Chunk], first_number: int) -> list[Excerpt]:
    """A number for each passage, so that citations lead to the place; nothing is shown twice."""
    cut: list[Excerpt] = []
    for one in excerpt_of_each(chunks):
        last = cut[-1] if cut and cut[-1].version == one.version else None
        if last is not None and one.start < last.end:
            one = replace(one, start=min(last.end, one.end))
        if one.start < one.end:
            cut.append(one)
    return [replace(one, number=n) for n, one in enumerate(from_first_words(cut), first_number)]


# --- what fits best -------------------------------------------------------------------------------


async def _search(sources: Sources, searched: Picked, caller: Caller) -> Search:
    """By the question as it would be put by itself, where a model has written that. One that nothing
    fits may mean what was spoken of before: then the question before it is put in front."""
    scope = SearchScope(
        collections=searched.collections or None,
        documents=searched.documents or None,
    )
    question = sources.question[:_MAX_QUERY_CHARS]
    texts = [sources.standalone, question] if sources.standalone else [question]
    if sources.earlier:
        texts.append(f"{sources.earlier[-1]} {sources.question}"[-_MAX_QUERY_CHARS:])
    for text in texts:
        search = await find(caller, text, scope)
        if any(fits(one) for one in search.candidates):
            break
    return search


async def _relevance(search: Search, caller: Caller) -> dict[int, float] | None:
    """By the reranker, where the operator has named one."""
    if not settings.RERANK_MODEL:
        return None
    best = [one.chunk_id for one in search.candidates[:NUM_RERANKED]]
    rows = await in_db(passages)(best)
    texts = [f"{row.context}\n{row.text}" if row.context else row.text for row in rows]
    scores = await relevance_of(search.question, texts, caller)
    return None if scores is None else {row.pk: s for row, s in zip(rows, scores, strict=True)}


def _select(
    sources: Sources,
    search: Search,
    relevance: dict[int, float] | None,
    count: CountTokens,
    room_tokens: int,
    whole: Sequence[Excerpt] = (),
) -> Found | None:
    """Behind documents that are shown whole, in the room that they leave."""
    shown = {one.document for one in whole}
    found = passages([one.chunk_id for one in search.candidates])
    rows = {row.pk: row for row in found if str(row.document_id) not in shown}
    candidates = [one for one in search.candidates if one.chunk_id in rows]
    near = [one.chunk_id for one in candidates[:NUM_RERANKED]]
    selection = select(
        candidates,
        # With what stands above each: names and headings may be longer than a passage.
        {id_: count(f"{row.document.name} {row.context}\n{row.text}") for id_, row in rows.items()},
        room_tokens - count(documents_text(whole, texts_of(whole))),
        unwanted=sources.without,
        relevance=relevance,
        similarity=_similarity(near, search),
    )
    if whole and not selection.chosen:
        return _found_whole(sources, whole)
    if not sources.picked and not selection.chosen:
        return None
    number = sources.first_number + len(whole)
    chosen = [*whole, *excerpts_of([rows[id_] for id_ in selection.chosen], number)]
    named = set(map(str, sources.picked.documents))
    if named and not named.intersection(one.document for one in chosen):
        chosen += _sample(sources, chosen, count, room_tokens)
    for id_ in {id_ for one in chosen for id_ in one.chunks}:
        selection.dropped.pop(id_, None)
    return Found(
        query=search.question,
        excerpts=tuple(one.to_json() for one in chosen),
        candidates=tuple(_told(one, selection, rows, relevance) for one in candidates),
    )


def _sample(
    sources: Sources, others: Sequence[Excerpt], count: CountTokens, room_tokens: int
) -> list[Excerpt]:
    """Of documents that were picked by name and that nothing fits, their beginning and passages from all
    over them: who wants a summary names no word of theirs. What is in the room beside the others."""
    live = _live_chunks(sources.picked.documents).exclude(pk__in=sources.without)
    ids: dict[UUID, list[int]] = {}
    for document_id, id_ in live.order_by("number").values_list("document_id", "pk"):
        ids.setdefault(document_id, []).append(id_)
    of_each = [ids[id_] for id_ in sources.picked.documents if id_ in ids]
    num = sum(map(len, of_each))
    room_tokens -= count(documents_text(others, texts_of(others)))
    num_chars = max(1, _num_chars(live))
    wanted = min(num, num * _MAX_CHARS_PER_TOKEN * room_tokens // num_chars)
    while wanted > 0:
        spread = [_spread(one, max(1, wanted * len(one) // num)) for one in of_each[:wanted]]
        rows = live.in_bulk([id_ for one in spread for id_ in one])
        number = sources.first_number + len(others)
        sample = excerpts_of([rows[id_] for one in spread for id_ in one if id_ in rows], number)
        sample = list(map(_marked, sample, (None, *sample)))
        tokens = count("\n\n".join(["", *rows_of(sample, texts_of(sample))]))
        if tokens <= room_tokens:
            return sample
        wanted = min(wanted - 1, wanted * room_tokens // tokens)
    return []


def _marked(one: Excerpt, before: Excerpt | None) -> Excerpt:
    """The first one of each document says that it is a part."""
    return replace(one, is_sample=before is None or before.document != one.document)


def _spread(ids: Sequence[int], wanted: int) -> list[int]:
    """A quarter of those that are wanted are the first ones, the others are equally far apart."""
    first = (wanted + 3) // 4
    rest = wanted - first
    left = len(ids) - first
    return [*ids[:first], *(ids[first + (2 * n + 1) * left // (2 * rest)] for n in range(rest))]


def _similarity(chunk_ids: Sequence[int], search: Search) -> dict[tuple[int, int], float]:
    """While one model takes over from another, the newer one's of those pairs that both know."""
    found: dict[tuple[int, int], float] = {}
    for meaning in search.meanings:
        found |= similarity(chunk_ids, meaning.model)
    return found


def _told(
    one: Candidate,
    selection: Selection,
    rows: dict[int, Chunk],
    relevance: dict[int, float] | None,
) -> dict[str, Any]:
    row = rows[one.chunk_id]
    return {
        "chunk": one.chunk_id,
        "document": str(row.document_id),
        "version": str(row.version_id),
        "start": row.start,
        "end": row.end,
        "page": row.first_page,
        "score": round(one.score, 4),
        "lexical_rank": one.lexical_rank,
        "lexical_score": round(one.lexical_score, 3),
        "coverage": round(one.coverage, 3),
        "vector_rank": one.vector_rank,
        "cosine": None if one.cosine is None else round(one.cosine, 4),
        "relevance": None if relevance is None else relevance.get(one.chunk_id),
        "dropped": selection.dropped.get(one.chunk_id),
    }
