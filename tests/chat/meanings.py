"""Chats, and an engine of this process that knows what they mean."""

import asyncio
from contextvars import copy_context
from datetime import UTC
from typing import TYPE_CHECKING, Any

from chat import message_embedder
from chat.engine import close_engine, engine
from chat.models import Conversation, MessageVector
from chat.search import Hit
from chat.search_by_meaning import search
from chat.search_query import parse
from inference import BUILTIN_EMBEDDING, Caller
from tests.chat.test_search import chat
from webapp.tenancy import as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

LENTILS = "Boil the lentils for twenty minutes with a bay leaf, then stir in fried onions."
COOKING = "how to cook legumes"
RECIPE = (
    f"{LENTILS} Soak dried beans over night, and throw the water away. Chickpeas need an hour on a low"
    " flame; red lentils fall apart after ten minutes and make a fine soup with cumin and lemon. Salt"
    " comes last, or they stay hard. Fry garlic and onions in olive oil until they are golden, add"
    " tomatoes, and let it simmer until all is soft. Serve with rice or flat bread, and with yoghurt."
    " What is left over keeps for three days in the fridge, and is even better on the second one."
)
FLIGHT = "The flight to Lisbon leaves at 6:40 and lands before nine."
PLANE = "plane departure time"


class Loop:
    """An event loop with the engine of this process on it, as the web process has."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self._runner.run(close_engine())
        self._runner.close()

    def load(self) -> None:
        async def loaded() -> None:
            await engine().embed(BUILTIN_EMBEDDING, ["warm"])

        self._runner.run(loaded())

    def embed(self) -> None:
        with as_system():
            self.run(message_embedder.embed_messages())

    def run(self, work: Any) -> Any:
        """In the scope of now; a runner's own context is that of its beginning."""
        return self._runner.run(work, context=copy_context())

    def hits(self, user: "User", text: str) -> list[Hit]:
        with as_user(user.pk):
            query = parse(text, UTC)
            return list(self.run(search(user, query, Caller(str(user.pk)))))


def titles(hits: list[Hit]) -> list[str]:
    rows = Conversation.objects.in_bulk([hit.conversation_id for hit in hits])
    return [rows[hit.conversation_id].title for hit in hits]


def found(loop: Loop, user: "User", text: str) -> list[str]:
    hits = loop.hits(user, text)
    with as_user(user.pk):
        return titles(hits)


def num_vectors(**wanted: Any) -> int:
    with as_system():
        return MessageVector.objects.filter(model__isnull=False, **wanted).count()


def num_waiting() -> int:
    with as_system():
        return MessageVector.objects.filter(model=None).count()


def some(alice: "User", n: int) -> None:
    with as_user(alice.pk):
        for number in range(n):
            chat(alice, f"c{number}", f"{LENTILS} Take {number} spoons of salt.")
