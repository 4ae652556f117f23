"""Searching documents: the question gets its vectors, and the database finds."""

from dataclasses import dataclass

from chat.db import in_db
from chat.embedder import meanings_of
from inference import Caller
from retrieval.scopes import SearchScope
from retrieval.searching import NUM_CANDIDATES, Candidate, Meaning, search


@dataclass(frozen=True, slots=True)
class Search:
    """What was asked, and all that was found, the best first."""

    question: str
    meanings: tuple[Meaning, ...]
    candidates: list[Candidate]


async def find(caller: Caller, question: str, scope: SearchScope) -> Search:
    """In the scope of the user, whose rights the database asks."""
    meanings = await meanings_of(question, caller)
    found = await in_db(search)(question, meanings, scope, 2 * NUM_CANDIDATES)
    return Search(question, tuple(meanings), found)
