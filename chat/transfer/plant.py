"""A portable chat becomes rows: all of it in one transaction, or nothing."""

import uuid
from typing import Any

from django.db import transaction

from chat import made_pictures
from chat.ids import uuid7
from chat.models import Conversation, Message, Role
from chat.parts import text_of
from chat.transfer.portable import Chat, Json

_BATCH = 500


@transaction.atomic
def plant(owner_id: Any, chat: Chat, conversation_id: uuid.UUID | None = None) -> Conversation:
    """Make a conversation of a checked chat. Ids are new; times are those of the chat."""
    conversation = Conversation.objects.create(
        id=conversation_id or uuid7(), owner_id=owner_id, **chat.fields
    )
    ids = {turn.id: uuid7() for turn in chat.messages}  # rows of the same moment are ordered by id
    Message.objects.bulk_create(
        [
            Message(
                id=ids[turn.id],
                conversation=conversation,
                parent_id=ids[turn.parent] if turn.parent is not None else None,
                text=text_of(turn.fields["parts"]),
                brought=True,
                **_renamed(_named(owner_id, turn.fields), ids),
            )
            for turn in chat.messages
        ],
        batch_size=_BATCH,
    )
    if "updated_at" in chat.fields:  # saving has set it to now
        rows = Conversation.objects.filter(pk=conversation.pk)
        rows.update(updated_at=chat.fields["updated_at"])
    return conversation


def _named(owner_id: Any, fields: Json) -> Json:
    """An answer that has drawn names what is there of that, whatever the file says."""
    if fields["role"] != Role.ASSISTANT or not made_pictures.made_in(fields["parts"]):
        return fields
    return fields | {"sources": made_pictures.sources_of(owner_id, fields["parts"])}


def _renamed(fields: Json, ids: dict[str, uuid.UUID]) -> Json:
    """`left_out` names the message before which a model was shown nothing: by its new id."""
    left_out = fields.get("left_out")
    if not isinstance(left_out, dict) or "before" not in left_out:
        return fields
    before = ids.get(str(left_out["before"]))
    return fields | {"left_out": {**left_out, "before": str(before)} if before else None}
