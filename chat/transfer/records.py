"""What a person keeps here beside the chats, as values for an export of everything."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.db import models

from chat.api_models import KeptAnswer, StoredResponse
from chat.cache_models import CachedAnswer
from chat.models import ApiFile, Batch, Conversation, Folder, Message, Share, Usage
from chat.personal_models import Assistant, Memory, Personalisation, SavedPrompt
from chat.schedule_models import Schedule
from moderation.models import Decision, Strike, Suspension
from retrieval.models import Access, Collection, Document, Version

Json = dict[str, Any]
_VERSION_FACTS = (
    "id",
    "number",
    "sha256",
    "size_bytes",
    "state",
    "reason",
    "created_at",
    "ready_at",
)
# Whose a row is, what opens a door, who works on it, and what only the site's secret makes sense of.
_LEFT_OUT = {
    "owner",
    "reviewer",
    "token_hash",
    "sealed_token",
    "text_hashes",
    "lease_owner",
    "lease_until",
    "attempts",
    "wait_until",
    "num_tries",
}


def records_of(user: Any) -> Iterator[tuple[str, list[Json]]]:
    """Each kind with the name of its file, read when it is asked for. In the scope of the user.

    Search entries and vectors of messages are left out: they say nothing that the chats themselves do
    not say, and are made anew of these wherever they are imported.
    """
    kinds: dict[str, type[models.Model]] = {
        "personalisation": Personalisation,
        "memories": Memory,
        "assistants": Assistant,
        "prompts": SavedPrompt,
        "schedules": Schedule,
        "folders": Folder,
        "shared-links": Share,
        "ledger": Usage,
        "responses": StoredResponse,
        "files": ApiFile,
        "batches": Batch,
        "collections": Collection,
        "accesses": Access,
        "strikes": Strike,
        "suspensions": Suspension,
    }
    for name, kind in kinds.items():
        rows = kind._default_manager.filter(owner_id=user.pk).order_by("pk")
        yield name, [_value(row) for row in rows]
    yield "documents", _documents(user)
    yield "usage", _usage(user)
    yield "moderation", _decisions(user)
    yield "cached-answers", _cached(user)
    yield "kept-answers", _kept(user)


def _decisions(user: Any) -> list[Json]:
    """Without what models have written and a policy has stopped: that reaches nobody this way either."""
    rows = Decision.objects.filter(owner_id=user.pk).order_by("created_at")
    return [_value(row) | ({} if row.stage == "input" else {"text": ""}) for row in rows]


def _cached(user: Any) -> list[Json]:
    """Questions that were answered, kept so that they need not be answered twice."""
    names = ("question", "text", "model", "collection_id", "created_at", "expires_at")
    return list(CachedAnswer.objects.filter(owner_id=user.pk).order_by("pk").values(*names))


def _kept(user: Any) -> list[Json]:
    """What programs are given again that ask again; the route and the key are the program's words."""
    rows = KeptAnswer.objects.filter(owner_id=user.pk).order_by("pk")
    names = ("route", "key", "status", "created_at")
    return [
        {name: getattr(row, name) for name in names}
        | {"body": bytes(row.body).decode(errors="replace")}
        for row in rows
    ]


def _documents(user: Any) -> list[Json]:
    """Of the user's own collections; the text of each is in its file (export.kept_files)."""
    versions: dict[Any, list[Json]] = defaultdict(list)
    rows = Version.objects.filter(document__collection__owner_id=user.pk).order_by("number")
    for facts in rows.values("document_id", *_VERSION_FACTS):
        versions[facts.pop("document_id")].append(facts)
    documents = Document.objects.filter(collection__owner_id=user.pk).order_by("pk")
    return [{**_value(row), "versions": versions[row.pk]} for row in documents]


def _usage(user: Any) -> list[Json]:
    """What each answer took."""
    conversations = Conversation.objects.filter(owner_id=user.pk)
    answers = Message.objects.filter(conversation__in=conversations, usage__isnull=False)
    names = ("id", "conversation_id", "model", "created_at", "usage", "timings")
    return list(answers.order_by("pk").values(*names))


def _value(row: models.Model) -> Json:
    fields = [field for field in row._meta.concrete_fields if field.name not in _LEFT_OUT]
    return {field.name: field.value_from_object(row) for field in fields}
