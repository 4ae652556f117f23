"""Reads and writes of custom instructions, assistants and saved prompts, each in one transaction.

Like everything of a user: somebody else's is as missing as what never was.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from chat.access import as_uuid
from chat.errors import Conflict, NameTaken, NotAllowed, NotFound, TooMany
from chat.memories import memories_of, memory_text
from chat.models import (
    Assistant,
    ChatOrigin,
    Conversation,
    Personalisation,
    SavedPrompt,
    Schedule,
)
from chat.setup import Setup
from retrieval.models import Collection

MAX_KEPT = 500  # of each kind and user
# The form of the settings does not have them.
_CHOSEN_IN_CHATS = {"default_model", "pinned_models", "uses_memories"}

Row = TypeVar("Row", Assistant, SavedPrompt, Schedule)
Kept = TypeVar("Kept", Assistant, SavedPrompt, Personalisation)


# --- custom instructions --------------------------------------------------------------------------


def personalisation_of(user: Any) -> Personalisation:
    """The user's row; one that is not saved while nothing was ever changed."""
    row = Personalisation.objects.filter(pk=user.pk).first()
    return row or Personalisation(owner_id=user.pk, version=0)


def save_personalisation(user: Any, version: int | None, **changes: Any) -> Personalisation:
    """Raises Conflict when `version` is given and is not that of the row (0: there is none)."""
    with transaction.atomic():
        Personalisation.objects.get_or_create(pk=user.pk, defaults={"version": 0})
        row = Personalisation.objects.select_for_update().get(pk=user.pk)
        if version is None and changes.keys() <= _CHOSEN_IN_CHATS:
            return _choose(row, changes)
        return _change(row, version, changes)


def _choose(row: Personalisation, changes: dict[str, Any]) -> Personalisation:
    """Without a new version: settings that are open meanwhile can be saved all the same."""
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=list(changes))
    return row


def instructions_text(row: Personalisation) -> str:
    """What a chat that starts now tells its model about the user."""
    if not row.is_on:
        return ""
    lines = (("About the user", row.about_you), ("How to answer", row.how_to_answer))
    return "\n\n".join(f"{head}: {text.strip()}" for head, text in lines if text.strip())


# --- assistants -----------------------------------------------------------------------------------


def assistants_for(user: Any) -> QuerySet[Assistant]:
    """The user's own and those that are shared with everybody, by name."""
    return Assistant.objects.filter(Q(owner_id=user.pk) | Q(is_shared=True)).order_by("name", "id")


def assistant_for(user: Any, assistant_id: object) -> Assistant:
    """One that the user may start a chat with. Raises NotFound."""
    return found(assistants_for(user), assistant_id, "assistant")


def own_assistant(user: Any, assistant_id: object, *, lock: bool = False) -> Assistant:
    """One that the user may change. Raises NotFound."""
    rows = Assistant.objects.filter(owner_id=user.pk)
    return found(rows.select_for_update() if lock else rows, assistant_id, "assistant")


def create_assistant(user: Any, **fields: Any) -> Assistant:
    """Raises NotAllowed, NotFound, TooMany."""
    _check_sharing(user, fields)
    _check_collections(fields)
    with transaction.atomic():
        _check_room(Assistant.objects.filter(owner_id=user.pk))
        return Assistant.objects.create(owner_id=user.pk, **fields)


def change_assistant(
    user: Any, assistant_id: object, version: int | None, **changes: Any
) -> Assistant:
    """Raises NotFound, NotAllowed, Conflict. Chats that were started with it stay as they are."""
    _check_sharing(user, changes)
    _check_collections(changes)
    with transaction.atomic():
        return _change(own_assistant(user, assistant_id, lock=True), version, changes)


def delete_assistant(user: Any, assistant_id: object) -> None:
    own_assistant(user, assistant_id).delete()


def shared_of(owner: Any) -> QuerySet[Assistant]:
    """Those that everybody sees."""
    return Assistant.objects.filter(owner_id=owner.pk, is_shared=True).order_by("pk")


def hand_over(assistant: Assistant, owner: Any) -> None:
    """From here on it is this person's to change. In the system's scope. Raises NotAllowed, TooMany."""
    _check_sharing(owner, {"is_shared": assistant.is_shared})
    with transaction.atomic():
        row = Assistant.objects.select_for_update().get(pk=assistant.pk)
        _check_room(Assistant.objects.filter(owner_id=owner.pk))
        _change(row, None, {"owner_id": owner.pk})


def collections_of(rows: Iterable[Assistant]) -> dict[Any, str]:
    """Names of the collections that assistants pick, by id: of those that the user may read."""
    ids = {id_ for row in rows for id_ in row.collections}
    return dict(Collection.objects.filter(pk__in=ids).values_list("pk", "name")) if ids else {}


def _check_collections(fields: dict[str, Any]) -> None:
    """Nobody names what they may not read themselves."""
    ids = set(fields.get("collections") or ())
    if Collection.objects.filter(pk__in=ids).count() < len(ids):
        raise NotFound("collection")


def _check_sharing(user: Any, fields: dict[str, Any]) -> None:
    if fields.get("is_shared") and not user.is_staff:
        raise NotAllowed(gettext("Only operators share assistants with everybody."))


# --- saved prompts --------------------------------------------------------------------------------


def prompts_of(user: Any) -> QuerySet[SavedPrompt]:
    return SavedPrompt.objects.filter(owner_id=user.pk).order_by("name")


def prompt_for(user: Any, prompt_id: object, *, lock: bool = False) -> SavedPrompt:
    rows = prompts_of(user)
    return found(rows.select_for_update() if lock else rows, prompt_id, "prompt")


def create_prompt(user: Any, **fields: Any) -> SavedPrompt:
    """Raises NameTaken, TooMany."""
    _check_room(prompts_of(user))
    try:
        with transaction.atomic():
            return SavedPrompt.objects.create(owner_id=user.pk, **fields)
    except IntegrityError:
        raise NameTaken(fields["name"]) from None


def change_prompt(user: Any, prompt_id: object, version: int | None, **changes: Any) -> SavedPrompt:
    """Raises NotFound, NameTaken, Conflict."""
    try:
        with transaction.atomic():
            return _change(prompt_for(user, prompt_id, lock=True), version, changes)
    except IntegrityError:
        raise NameTaken(changes.get("name", "")) from None


def delete_prompt(user: Any, prompt_id: object) -> None:
    prompt_for(user, prompt_id).delete()


# --- a chat that starts ---------------------------------------------------------------------------


def setup_of(user: Any, wanted: Setup, *, is_temporary: bool = False) -> dict[str, Any]:
    """What a new conversation is started with, as its fields: a copy, so that it stays. NotFound.

    A temporary one neither reads nor writes what is remembered of its user.
    """
    own = personalisation_of(user)
    uses_memories = own.uses_memories and not is_temporary
    memories = [row.text for row in memories_of(user)] if uses_memories else None
    fields = setup_by(own, wanted, memories)
    if wanted.assistant_id is None:
        return fields
    row = assistant_for(user, wanted.assistant_id)
    return fields | {
        "system_prompt": wanted.system_prompt or row.system_prompt,
        "history_strategy": wanted.history_strategy or row.history_strategy or own.history_strategy,
        "parameters": row.parameters if wanted.parameters is None else wanted.parameters,
        "tool_servers": list(
            row.tool_servers if wanted.tool_servers is None else wanted.tool_servers
        ),
        "assistant": {"id": str(row.pk), "name": row.name, "version": row.version},
    }


def setup_by(own: Personalisation, wanted: Setup, memories: Iterable[str] | None) -> dict[str, Any]:
    """The same without an assistant, by rows that are at hand; with None for `memories` it neither reads
    nor writes any."""
    return {
        "instructions": instructions_text(own),
        "memory": memory_text(memories or ()),
        "remembers": memories is not None,
        "system_prompt": wanted.system_prompt,
        "parameters": wanted.parameters or {},
        "history_strategy": wanted.history_strategy or own.history_strategy,
        "tool_servers": list(wanted.tool_servers or ()),
    }


def is_setup_of_others(conversation: Conversation) -> bool:
    """Whether somebody else has written what the chat is told first, or may have: an assistant that
    another shares, or one that is gone; an import."""
    if conversation.assistant:
        row = Assistant.objects.filter(pk=conversation.assistant["id"])
        return not row.filter(owner_id=conversation.owner_id).exists()
    if conversation._state.adding or not (conversation.system_prompt or conversation.instructions):
        return False
    return ChatOrigin.objects.filter(conversation=conversation).exists()


# --- all ------------------------------------------------------------------------------------------


def found(rows: QuerySet[Row], row_id: object, what: str) -> Row:
    """Raises NotFound, also for what is no id."""
    row = rows.filter(pk=as_uuid(row_id, what)).first()
    if row is None:
        raise NotFound(what)
    return row


def _check_room(rows: QuerySet[Any]) -> None:
    if rows.count() >= MAX_KEPT:
        raise TooMany(MAX_KEPT)


def check_version(row: Kept | Schedule, version: int | None) -> None:
    """Raises Conflict when `version` is given and the row has moved on."""
    if version is not None and version != row.version:
        raise Conflict(gettext("This was changed elsewhere. Reload the page to see it."))


def _change(row: Kept, version: int | None, changes: dict[str, Any]) -> Kept:
    check_version(row, version)
    for name, value in changes.items():
        setattr(row, name, value)
    row.version += 1
    row.save(update_fields=[*changes, "version"])
    return row
