"""Which chats the engine still remembers: how much of each is in its KV cache.

The cache lives as long as this process's workers, so only chats that were written to here can be warm,
and it is enough to remember those.
"""

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.engine import engine
from chat.events import Delta, LogEvent, Started
from chat.values import Value
from inference import EngineError, cache_ids

_MAX_CHATS = 512  # of all users together
_MAX_ASKED = 40  # a page of the sidebar


@dataclass(frozen=True, slots=True)
class _Written:
    user_id: Any
    model: str
    ids: "array[int]"  # as caches know them


_chats: OrderedDict[UUID, _Written] = OrderedDict()


def remember(conversation_id: UUID, user_id: Any, events: Sequence[LogEvent]) -> None:
    """Keep what the engine has read and written last in a chat, for as long as there are no newer."""
    ids = array("i")
    model = ""
    for event in events:
        if isinstance(event, Started):
            known = cache_ids(event.prompt_ids, event.images)
            # What stands for an image takes more than four bytes.
            ids, model = array("q" if event.images else "i", known), event.model
        elif isinstance(event, Delta) and ids:
            ids.extend(event.ids)
    if not ids:
        return  # of another server, or taken up from a process that has died
    _chats[conversation_id] = _Written(user_id, model, ids)
    _chats.move_to_end(conversation_id)
    while len(_chats) > _MAX_CHATS:
        _chats.popitem(last=False)


async def warmth(user: Any) -> Value:
    """`{conversation: {model, tokens, cached}}` of the user's chats that were written to of late.

    One question to each model, between two of its steps. A chat of which nothing is known is left out.
    """
    by_model: dict[str, list[tuple[UUID, _Written]]] = defaultdict(list)
    own = [(key, chat) for key, chat in reversed(_chats.items()) if chat.user_id == user.pk]
    for key, chat in own[:_MAX_ASKED]:
        by_model[chat.model].append((key, chat))
    found: Value = {}
    for model, chats in by_model.items():
        try:
            prompts = [chat.ids for _, chat in chats]
            cached = await engine().count_cached(model, prompts, cache_salt=str(user.pk))
        except EngineError:
            continue  # the model is gone
        for (key, chat), num in zip(chats, cached or (), strict=False):
            found[str(key)] = {"model": model, "tokens": len(chat.ids), "cached": num}
    return found
