"""Which answers may add to what is known of their user, and how they do it.

Offered is the tool in chats that began while the user wanted it (Conversation.remembers), as long as
they do: its schema is a part of the prompt, and chats that there were keep theirs.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from chat import memories, personal
from chat.db import in_db
from chat.errors import ChatError
from chat.models import Conversation
from chat.rights import Rights
from chat.tools import REMEMBER, Tool, ToolFailed
from chat.tools.remember import is_shown_to


def tools_of(rights: Rights, conversation: Conversation, models: Iterable[str]) -> tuple[str, ...]:
    """Names of the tools that a chat has beside those of every chat: of what it has picked, and the one
    that remembers where it is offered."""
    return (*rights.tools_of(conversation.tool_servers), *_offered(rights, conversation, models))


def _offered(rights: Rights, conversation: Conversation, models: Iterable[str]) -> tuple[str, ...]:
    """The tool's name, if some of the models are shown it. Asks the database about a saved chat."""
    if not conversation.remembers or not rights.tools or not any(map(is_shown_to, models)):
        return ()
    is_wanted = conversation._state.adding or personal.personalisation_of(rights.user).uses_memories
    return (REMEMBER.name,) if is_wanted else ()


def bound(tools: Sequence[Tool], conversation: Conversation) -> tuple[Tool, ...]:
    """The tools, with the one that remembers bound to the chat's owner, in whose scope it runs."""

    async def run(arguments: dict[str, Any]) -> str:
        text = arguments.get("text")
        if not isinstance(text, str):
            raise ToolFailed("'text' has to be a text")
        return await in_db(_remember)(text, conversation)

    return tuple(replace(one, run=run) if one.name == REMEMBER.name else one for one in tools)


def _remember(text: str, conversation: Conversation) -> str:
    """Of a switch that was turned off meanwhile the chat learns here."""
    user = conversation.owner
    if not personal.personalisation_of(user).uses_memories:
        raise ToolFailed("the user has switched memory off")
    try:
        row, is_new = memories.remember(user, text, conversation.pk)
    except ChatError as error:
        raise ToolFailed(str(error)) from None
    value = {"remembered": row.text, "memory": str(row.pk), "is_new": is_new}
    return json.dumps(value, ensure_ascii=False)
