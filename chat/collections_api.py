"""REST of collections, and who may read them, under /api/collections."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import model_validator

from chat.db import in_db
from chat.document_values import access_value, collection_value
from chat.rights import rights_of
from chat.values import Value
from retrieval import collections, sharing

router = Router()


class NewCollection(Schema):
    name: str
    description: str = ""
    caches_answers: bool = False


class CollectionChange(Schema):
    """With `caches_answers` a question about it that somebody has asked is answered as it was."""

    name: str | None = None
    description: str | None = None
    caches_answers: bool | None = None


class NewAccess(Schema):
    """One of `email`, `group` (its id) and `everybody`."""

    email: str | None = None
    group: int | None = None
    everybody: bool = False
    may_write: bool = False

    @model_validator(mode="after")
    def _names_one(self) -> "NewAccess":
        given = (self.email is not None, self.group is not None, self.everybody)
        if sum(given) != 1:
            raise ValueError("email: name one of email, group and everybody")
        return self


@router.get("")
async def list_collections(request: HttpRequest) -> dict[str, Any]:
    """All that you may read, those that changed last first."""
    return {"collections": await in_db(_all)(request.user)}


@router.post("", response={201: dict[str, Any]})
async def create_collection(request: HttpRequest, data: NewCollection) -> Status[Value]:
    rights_of(request).require_files()
    given = (data.name, data.description, data.caches_answers)
    row = await in_db(collections.create)(request.user, *given)
    return Status(201, await in_db(_value)(request.user, row.pk))


@router.get("/{collection_id}")
async def show_collection(request: HttpRequest, collection_id: str) -> dict[str, Any]:
    return await in_db(_value)(request.user, collection_id)


@router.patch("/{collection_id}")
async def change_collection(
    request: HttpRequest, collection_id: str, data: CollectionChange
) -> dict[str, Any]:
    changes = data.dict(exclude_none=True)
    row = await in_db(collections.change)(request.user, collection_id, **changes)
    return await in_db(_value)(request.user, row.pk)


@router.delete("/{collection_id}", response={204: None})
async def delete_collection(request: HttpRequest, collection_id: str) -> Status[None]:
    """With its documents, for everybody who reads it."""
    await in_db(collections.delete)(request.user, collection_id)
    return Status(204, None)


@router.get("/{collection_id}/accesses")
async def list_accesses(request: HttpRequest, collection_id: str) -> dict[str, Any]:
    """Who else reads it, and with whom you may share it; for its owner."""
    return await in_db(_accesses)(request.user, collection_id)


@router.post("/{collection_id}/accesses", response={201: dict[str, Any]})
async def share_collection(
    request: HttpRequest, collection_id: str, data: NewAccess
) -> Status[Value]:
    """Share it, or let somebody write who could only read, or the other way round."""
    row = await in_db(sharing.share)(
        request.user,
        collection_id,
        email=data.email,
        group_id=data.group,
        may_write=data.may_write,
    )
    return Status(201, access_value(row))


@router.delete("/{collection_id}/accesses/{access_id}", response={204: None})
async def unshare_collection(
    request: HttpRequest, collection_id: str, access_id: int
) -> Status[None]:
    """Holds from the next search on."""
    await in_db(sharing.unshare)(request.user, collection_id, access_id)
    return Status(204, None)


def _all(user: Any) -> list[Value]:
    return [collection_value(row, user) for row in collections.described(user)]


def _value(user: Any, collection_id: object) -> Value:
    collections.collection_for(user, collection_id)
    row = collections.described(user).get(pk=collections.as_uuid(collection_id, "collection"))
    return collection_value(row, user)


def _accesses(user: Any, collection_id: object) -> Value:
    rows = sharing.accesses(user, collection_id)
    return {
        "accesses": [access_value(row) for row in rows],
        "groups": [{"id": row.pk, "name": row.name} for row in sharing.groups_of(user)],
        "may_share_with_everybody": sharing.may_share_with_everybody(user),
    }
