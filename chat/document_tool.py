"""A tool by which a model itself looks something up in collections, while it answers a program.

Its passages are numbered through all searches of an answer, so that "[2]" is one of them. In chats it is
the other way round (looking_up.py): there the question is looked up before the model is asked.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from chat.db import in_db
from chat.document_prompt import row_text
from chat.looking_up import CountTokens, look_up
from chat.sources import Picked, Sources
from chat.storable import storable
from chat.values import Value
from chat.vector_store_files import public_file_id
from chat.vector_store_search import scored
from inference import Caller
from retrieval.excerpts import Excerpt, texts_of
from retrieval.models import Document
from retrieval.searching import Candidate

MAX_QUERY_CHARS = 2_000
NAMES = ("search_documents", "file_search", "search_files")
"""What models know it by: the first that no tool of the caller's has."""
NOTHING = "No passages found."
PARAMETERS: Value = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to look for"}},
    "required": ["query"],
    "additionalProperties": False,
}
DESCRIPTION = "Searches the user's documents. Returns numbered passages to cite like [1]."


@dataclass(frozen=True, slots=True)
class DocumentTool:
    """`name` is what the model calls. It looks in `collections`, or where those were filtered in
    `documents`, of which there may be none. Of one search the best `most` passages are read, whose
    scores are at least `least_score`. `num_known` passages are in the prompt already, which earlier
    searches have found. `later_grammar` is what the turns behind the first one follow, where a call is
    forced once, and `last_grammar` what the last one does, which calls nothing."""

    name: str
    collections: tuple[UUID, ...] = ()
    documents: tuple[UUID, ...] | None = None
    most: int = 20
    least_score: float = 0.0
    num_known: int = 0
    later_grammar: str = ""
    last_grammar: str = ""

    def sources(self, query: str, first_number: int) -> Sources | None:
        if self.documents is None:
            return Sources(query, Picked(self.collections), first_number=first_number)
        if not self.documents:
            return None
        # What was named by itself would be shown whole, or in samples where nothing fits.
        return Sources(query, Picked(), kept=self.documents, first_number=first_number)


def function(name: str) -> Value:
    """The tool as a model is told of it."""
    return {"name": name, "description": DESCRIPTION, "parameters": PARAMETERS}


@dataclass(frozen=True, slots=True)
class Passage:
    """`row` is what the model reads; `score` is from 0 to 1."""

    number: int
    row: str
    text: str
    score: float
    document: Document

    def result(self) -> Value:
        """As programs are told of it. Source: OpenAI's published API description, version 2.3.0."""
        return {
            "file_id": public_file_id(self.document),
            "filename": self.document.name,
            "score": round(self.score, 6),
            "attributes": self.document.attributes,
            "text": self.text,
        }


def query_of(arguments: str) -> str:
    """Empty where the model has not said what to look for."""
    try:
        query = json.loads(arguments).get("query")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return storable(query.strip()[:MAX_QUERY_CHARS]) if isinstance(query, str) else ""


async def search(
    tool: DocumentTool,
    query: str,
    caller: Caller,
    count: CountTokens,
    room_tokens: int,
    first_number: int,
) -> list[Passage]:
    """The best ones that the room has, in their order. In the scope of the user."""
    sources = tool.sources(query, first_number)
    found = await look_up(sources, caller, count, room_tokens) if sources else None
    if found is None:
        return []
    scores = scored(list(map(_candidate, found.candidates)))
    excerpts = list(map(Excerpt.from_json, found.excerpts))
    rated = [
        (max((scores.get(id_, 0.0) for id_ in one.chunks), default=0.0), one) for one in excerpts
    ]
    good = [(score, one) for score, one in rated if score >= tool.least_score][: tool.most]
    return await in_db(_passages)(good, first_number)


def _candidate(told: Value) -> Candidate:
    return Candidate(told["chunk"], told["score"], coverage=told["coverage"], cosine=told["cosine"])


def _passages(rated: Sequence[tuple[float, Excerpt]], first_number: int) -> list[Passage]:
    """Of what is gone by now, nothing."""
    texts = texts_of(one for _, one in rated)
    documents = Document.objects.in_bulk([UUID(one.document) for _, one in rated])
    found: list[Passage] = []
    for (score, one), text in zip(rated, texts, strict=True):
        document = documents.get(UUID(one.document))
        if text is None or document is None:
            continue
        numbered = replace(one, number=first_number + len(found))
        row = row_text(numbered, text)
        found.append(Passage(numbered.number, row, text, score, document))
    return found
