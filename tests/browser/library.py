"""Chats that are there already, written into a site's database."""

import json
from typing import Any

from tests.sites import Site

_SCRIPT = """
import json
from chat.models import Conversation, Folder, Message
from webapp.models import User
from webapp.tenancy import as_user
user = User.objects.get(email={email!r})
with as_user(user.pk):
    for chat in json.loads({chats!r}):
        made = Conversation.objects.create(
            owner=user, title=chat["title"], title_by_hand=True, model="vitrine-small"
        )
        rows = []
        for behind, text in chat["messages"]:
            parent = None if behind is None else rows[behind]
            is_answer = parent is not None and parent.role == "user"
            rows.append(Message.objects.create(
                conversation=made, parent=parent, text=text, model="vitrine-small" * is_answer,
                role="assistant" if is_answer else "user",
                parts=[{{"type": "text", "text": text}}],
                finish_reason="stop" * is_answer,
            ))
"""


Branching = list[tuple[int | None, str]]


def add_chats(site: Site, email: str, chats: dict[str, list[str] | Branching]) -> None:
    """Chats by title, each with its messages: question, answer, question, ... The last is newest.

    Or each as (place of the message that it follows, text).
    """
    values: list[Any] = [
        {"title": title, "messages": [_placed(place, text) for place, text in enumerate(texts)]}
        for title, texts in chats.items()
    ]
    script = _SCRIPT.format(email=email, chats=json.dumps(values))
    done = site.manage("shell", "-c", script)
    assert done.returncode == 0, done.stderr


def _placed(place: int, text: str | tuple[int | None, str]) -> tuple[int | None, str]:
    return ((place - 1 if place else None), text) if isinstance(text, str) else text
