"""/api for what is remembered of you."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status

from chat import memories, values
from chat.db import in_db
from chat.models import Memory
from chat.strict import Strict, text_of

router = Router()


class MemoryIn(Strict):
    """`conversation` is the chat that it was said in, one of yours."""

    text: text_of(Memory.MAX_CHARS, 1)  # type: ignore[valid-type]
    conversation: UUID | None = None


@router.get("/memories")
async def list_memories(request: HttpRequest) -> dict[str, Any]:
    """What chats that start from now on know of you, oldest first, if `uses_memories` of
    `/api/personalisation` is on."""
    rows = await in_db(lambda: list(memories.memories_of(request.user)))()
    return {"items": [memory_value(row) for row in rows]}


@router.post("/memories", response={200: dict, 201: dict})
async def create_memory(request: HttpRequest, data: MemoryIn) -> Status[dict[str, Any]]:
    """Remember a text for chats that start from now on. The same text twice is one, with a 200."""
    row, is_new = await in_db(memories.remember)(request.user, data.text, data.conversation)
    return Status(201 if is_new else 200, memory_value(row) | {"is_new": is_new})


@router.put("/memories/{memory_id}")
async def put_memory(request: HttpRequest, memory_id: str, data: MemoryIn) -> dict[str, Any]:
    """Another text for one; one that was deleted is put back in its place. Chats that there are stay as
    they are."""
    row = await in_db(memories.put_memory)(request.user, memory_id, data.text, data.conversation)
    return memory_value(row)


@router.delete("/memories/{memory_id}", response={204: None})
async def delete_memory(request: HttpRequest, memory_id: str) -> tuple[int, None]:
    """Forget one, for chats that start from now on."""
    await in_db(memories.forget)(request.user, memory_id)
    return 204, None


@router.delete("/memories")
async def delete_memories(request: HttpRequest) -> dict[str, Any]:
    """Forget all of them."""
    return {"deleted": await in_db(memories.forget_all)(request.user)}


def memory_value(row: Memory) -> values.Value:
    chat = row.conversation_id
    return {
        "id": str(row.pk),
        "text": row.text,
        "conversation": str(chat) if chat else None,
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
    }
