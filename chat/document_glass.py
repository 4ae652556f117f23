"""What an answer was written from, as values: its excerpts, and the search that found them.

Texts are read as of now and for the reader: what is gone, or no longer shared, has none.
"""

from typing import Any

from chat import access
from chat.document_prompt import rows_of, text_of_rows, unread_rows
from chat.models import Generation, Message
from chat.temporary_sources import excerpts_in
from chat.values import Value
from retrieval.excerpts import Excerpt, texts_of, told
from retrieval.models import Chunk


def excerpts_for(user: Any, message_id: object) -> Value:
    """Raises NotFound."""
    excerpts, texts = _read(access.message_for(user, message_id))
    return {"excerpts": _told(excerpts, texts)}


def texts_at(values: list[Any]) -> Value:
    """What excerpts of a temporary chat say, which its page has kept. Raises BadFrame."""
    excerpts = [Excerpt.from_json(value) for value in excerpts_in(values)]
    return {"excerpts": _told(excerpts, texts_of(excerpts))}


def retrieval_of(user: Any, message_id: object) -> Value:
    """`candidates` are the best first; one whose `text` is null is gone, or may not be read any more.
    `dropped` says why one was not shown. Raises NotFound."""
    generation = access.answer_for(user, message_id)
    message = generation.message
    excerpts, texts = _read(message)
    found = message.found or {}
    num_waiting, num_failed = found.get("num_waiting", 0), found.get("num_failed", 0)
    rows = (*rows_of(excerpts, texts), *unread_rows(num_waiting, num_failed))
    return {
        "message": str(message.pk),
        "query": found.get("query", ""),
        "is_whole": bool(found.get("is_whole")),
        "num_waiting": num_waiting,
        "num_failed": num_failed,
        "excerpts": _told(excerpts, texts),
        "candidates": _candidates(generation),
        "without": generation.params.get("without", []),
        "prompt": text_of_rows(rows) if found else "",
    }


def _read(message: Message) -> tuple[list[Excerpt], list[str | None]]:
    values = (message.found or {}).get("excerpts", [])
    excerpts = [Excerpt.from_json(value) for value in values]
    return excerpts, texts_of(excerpts)


def _told(excerpts: list[Excerpt], texts: list[str | None]) -> list[Value]:
    pairs = zip(excerpts, texts, strict=True)
    return [{**told(one, text).to_json(), "text": text} for one, text in pairs]


def _candidates(generation: Generation) -> list[Value]:
    kept = generation.trace.get("candidates", [])
    rows = Chunk.objects.select_related("document").in_bulk([one["chunk"] for one in kept])
    shown = []
    for one in kept:
        row = rows.get(one["chunk"])
        name, text = (row.document.name, row.text) if row else (None, None)
        shown.append({**one, "name": name, "text": text})
    return shown
