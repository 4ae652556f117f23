"""Chats that are there already, written into a site's database."""

from typing import Any

import psycopg

from tests.sites import Site

Branching = list[tuple[int | None, str]]


def add_chats(site: Site, email: str, chats: dict[str, list[str] | Branching]) -> None:
    """Chats by title, each with its messages: question, answer, question, ... The last is newest.

    Or each as (place of the message that it follows, text).
    """
    from chat.models import Conversation, Message

    with site.connection() as database:
        owner = database.execute("SELECT id FROM webapp_user WHERE email = %s", [email]).fetchone()
        assert owner, email
        for title, texts in chats.items():
            chat = Conversation(
                owner_id=owner[0], title=title, title_by_hand=True, model="vitrine-small"
            )
            _insert(database, chat)
            rows: list[Message] = []
            for behind, text in (_placed(place, text) for place, text in enumerate(texts)):
                parent = None if behind is None else rows[behind]
                is_answer = parent is not None and parent.role == "user"
                message = Message(
                    conversation=chat,
                    parent=parent,
                    text=text,
                    model="vitrine-small" * is_answer,
                    role="assistant" if is_answer else "user",
                    parts=[{"type": "text", "text": text}],
                    finish_reason="stop" * is_answer,
                )
                _insert(database, message)
                rows.append(message)


def _insert(database: psycopg.Connection[Any], row: Any) -> None:
    """As Django would, whose own connection is to the tests' database."""
    from django.db import connection

    fields = row._meta.concrete_fields
    names = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join("%s" for _ in fields)
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    database.execute(f"INSERT INTO {row._meta.db_table} ({names}) VALUES ({marks})", values)


def _placed(place: int, text: str | tuple[int | None, str]) -> tuple[int | None, str]:
    return ((place - 1 if place else None), text) if isinstance(text, str) else text
