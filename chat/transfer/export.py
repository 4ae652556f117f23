"""Export: a chat as JSON or Markdown, or all chats as a zip that is made while it is sent.

Nothing is kept but one portion of chats and the zip's list of files, however many chats there are.
"""

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.utils import timezone

from chat import access, file_store, history
from chat.db import in_db
from chat.models import ApiFile, Conversation, Message
from chat.off_loop import off_loop
from chat.transfer.markdown import to_markdown
from chat.transfer.portable import chat_of, to_json
from chat.transfer.reading import SCHEMA, VERSION
from retrieval import document_files
from retrieval.models import Version

PORTION = 50
_CHUNK_BYTES = 2**18
_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')


@dataclass(frozen=True, slots=True)
class Portion:
    """Some chats with all messages that are seen of them; `last` is where the next portion begins."""

    chats: list[tuple[Conversation, list[Message]]]
    last: UUID | None


def json_of(chats: list[tuple[Conversation, list[Message]]], now: datetime) -> bytes:
    """A file of the schema `vitrine.chats` (docs/data.md)."""
    value = {
        "schema": SCHEMA,
        "version": VERSION,
        "exported_at": now.isoformat(),
        "chats": [to_json(chat_of(conversation, rows)) for conversation, rows in chats],
    }
    return json.dumps(value, ensure_ascii=False).encode()


def markdown_of(conversation: Conversation, rows: list[Message], *, all_branches: bool) -> bytes:
    shown = parents_first(rows) if all_branches else history.shown_branch(rows)
    return to_markdown(conversation.title, shown).encode()


def parents_first(rows: list[Message]) -> list[Message]:
    """A branch to its end, then the next one."""
    children: dict[UUID | None, list[Message]] = defaultdict(list)
    for row in rows:
        children[row.parent_id].append(row)
    found: list[Message] = []
    todo = children[None][::-1]
    while todo:
        found.append(todo.pop())
        todo += children[found[-1].pk][::-1]
    return found


def file_name(conversation: Conversation, ending: str) -> str:
    """Safe on every file system, and different for each chat."""
    title = _UNFIT.sub(" ", conversation.title)[:60].strip(" .") or "Chat"
    return f"{conversation.created_at:%Y-%m-%d} {title} {conversation.pk.hex[-6:]}.{ending}"


# --- all chats -------------------------------------------------------------------------------------


@dataclass
class Progress:
    done: int = 0
    total: int = 0


def kept_files(user: Any) -> dict[str, Path]:
    """The files of /v1/files, and all versions of the documents in the user's own collections, by a
    name for each that is safe and its own. In the user's scope."""
    files = ApiFile.objects.filter(owner_id=user.pk).order_by("pk")
    versions = Version.objects.filter(collection__owner_id=user.pk).order_by("pk")
    found = {
        f"files/{row.pk.hex}-{_safe_name(row.name)}": file_store.path_of(row.pk) for row in files
    }
    for id_, name in versions.values_list("pk", "document__name"):
        path = document_files.path_of(id_)
        if path.exists():
            found[f"documents/{id_.hex}-{_safe_name(name)}"] = path
    return found


def _safe_name(name: str) -> str:
    return _UNFIT.sub(" ", name)[:100].strip(" .")


async def zipped(
    user: Any,
    kind: str,
    progress: Progress,
    beside: Mapping[str, bytes] | None = None,
    copied: Mapping[str, Path] | None = None,
) -> AsyncIterator[bytes]:
    """The bytes of a zip with every chat of the user: `json` or `markdown`, all branches.

    `beside` are further files of it, by name, and `copied` those that lie on the disk.
    """
    pack = _Pack(kind)
    for name, data in (beside or {}).items():
        for piece in await off_loop(pack.put, name, data):
            yield piece
    for name, path in (copied or {}).items():
        copying = pack.copy(name, path)
        while (pieces := await off_loop(next, copying, None)) is not None:
            for piece in pieces:
                yield piece
    progress.total = await in_db(_count)(user)
    last: UUID | None = None
    while True:
        portion = await in_db(_portion)(user, last)
        if portion.last is None:
            break
        last = portion.last
        for piece in await in_db(pack.add)(portion.chats):
            yield piece
        progress.done += len(portion.chats)
    for piece in pack.end():
        yield piece


def _count(user: Any) -> int:
    return access.conversations_of(user).count()


def _portion(user: Any, after: UUID | None) -> Portion:
    """By id, so that what is changed or added meanwhile moves nothing."""
    rows = access.conversations_of(user).order_by("pk")
    if after is not None:
        rows = rows.filter(pk__gt=after)
    conversations = list(rows[:PORTION])
    messages = history.messages_of(conversations)
    chats = [(conversation, messages[conversation.pk]) for conversation in conversations]
    return Portion(chats, conversations[-1].pk if conversations else None)


class _Pipe:
    """What a ZipFile writes; it cannot seek, so zipfile puts sizes behind the data."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def drained(self) -> list[bytes]:
        pieces, self.pieces = self.pieces, []
        return pieces


@dataclass
class _Pack:
    """One JSON file for each portion, or one Markdown file for each chat."""

    kind: str
    num_files: int = 0
    pipe: _Pipe = field(default_factory=_Pipe)

    def __post_init__(self) -> None:
        self.archive = zipfile.ZipFile(self.pipe, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]

    def add(self, chats: list[tuple[Conversation, list[Message]]]) -> list[bytes]:
        for name, data in self._files(chats):
            self.archive.writestr(name, data)
        return self.pipe.drained()

    def put(self, name: str, data: bytes) -> list[bytes]:
        self.archive.writestr(name, data)
        return self.pipe.drained()

    def copy(self, name: str, path: Path) -> Iterator[list[bytes]]:
        """What there is to send while a file is put in, chunk by chunk; nothing of one that is gone."""
        try:
            source = path.open("rb")
        except FileNotFoundError:
            return
        with source:
            with self.archive.open(name, "w", force_zip64=True) as target:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
                    yield self.pipe.drained()
            yield self.pipe.drained()

    def _files(
        self, chats: list[tuple[Conversation, list[Message]]]
    ) -> Iterator[tuple[str, bytes]]:
        if self.kind == "json":
            self.num_files += 1
            yield f"chats-{self.num_files:05}.json", json_of(chats, timezone.now())
            return
        for conversation, rows in chats:
            yield file_name(conversation, "md"), markdown_of(conversation, rows, all_branches=True)

    def end(self) -> list[bytes]:
        if self.kind == "json" and not self.num_files:
            self.archive.writestr("chats-00001.json", json_of([], timezone.now()))
        self.archive.close()
        return self.pipe.drained()
