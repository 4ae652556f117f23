"""Who else may read a collection, or write in it: people, groups, everybody here. Synchronous.

What is granted or taken here holds from the next query on; nothing of it is remembered elsewhere.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext

from retrieval.collections import MAX_COLLECTIONS, own_collection_for
from retrieval.errors import BadValue, Conflict, NoRoom, NotAllowed, NotFound, TooMany
from retrieval.models import Access, Collection, Version
from retrieval.room import hold_place, room_of
from retrieval.storable import is_storable

MAX_ACCESSES = 500


def accesses(user: Any, collection_id: object) -> "QuerySet[Access]":
    """Raises NotFound, and NotAllowed for whoever is not the owner."""
    row = own_collection_for(user, collection_id)
    return Access.objects.filter(collection=row).select_related("user", "group").order_by("pk")


def groups_of(user: Any) -> "QuerySet[Group]":
    """With which the user may share: their own, and all for an administrator."""
    groups = Group.objects.order_by("name")
    return groups if user.is_superuser else groups.filter(user=user.pk)


def may_share_with_everybody(user: Any) -> bool:
    return bool(user.is_superuser)


def may_be_shared(collection: Collection) -> bool:
    """What is attached to messages may not; where it was shared once, its owner can end that."""
    is_shared = Exists(Access.objects.filter(collection=OuterRef("pk")))
    rows = Collection.objects.filter(is_shared | Q(is_for_chats=False))
    return rows.filter(pk=collection.pk).exists()


def share(
    user: Any,
    collection_id: object,
    *,
    email: str | None = None,
    group_id: int | None = None,
    may_write: bool = False,
) -> Access:
    """With a person by their address, with a group, or with neither with everybody; again, to let them
    write or only read. Raises NotFound, NotAllowed, BadValue, TooMany, Conflict."""
    collection = own_collection_for(user, collection_id)
    if collection.is_for_chats:
        raise Conflict(gettext("Files of chats are not shared. Bring them to another collection."))
    whom = _whom(user, email, group_id)
    rows = Access.objects.filter(collection=collection)
    if rows.count() >= MAX_ACCESSES and not rows.filter(**whom).exists():
        raise TooMany(MAX_ACCESSES)
    try:
        with transaction.atomic():
            access, _ = Access.objects.update_or_create(
                collection=collection,
                **whom,
                defaults={"may_write": may_write},
                create_defaults={"may_write": may_write, "owner_id": user.pk},
            )
    except IntegrityError:
        raise Conflict(gettext("That was just shared. Look again.")) from None
    _touch(collection)
    return access


def unshare(user: Any, collection_id: object, access_id: int) -> None:
    """Raises NotFound, NotAllowed."""
    collection = own_collection_for(user, collection_id)
    num_gone, _ = Access.objects.filter(collection=collection, pk=access_id).delete()
    if not num_gone:
        raise NotFound("access")
    _touch(collection)


# --- another owner --------------------------------------------------------------------------------


def shared_of(owner: Any) -> "QuerySet[Collection]":
    """Those that somebody else may read, or write in. In a scope that sees them."""
    is_shared = Exists(Access.objects.filter(collection=OuterRef("pk")))
    rows = Collection.objects.filter(is_shared, owner_id=owner.pk, is_for_chats=False)
    return rows.order_by("pk")


def hand_over(collection: Collection, owner: Any) -> None:
    """From here on it is this person's, and counts as theirs; whoever else may read or write in it still
    may. In the system's scope. Raises TooMany, NoRoom."""
    with transaction.atomic():
        # First of all, as whoever publishes does: in another order each would wait for the other.
        Collection.objects.select_for_update().get(pk=collection.pk)
        hold_place(owner.pk)
        if Collection.objects.filter(owner_id=owner.pk).count() >= MAX_COLLECTIONS:
            raise TooMany(MAX_COLLECTIONS)
        versions = Version.objects.filter(collection=collection)
        if (versions.aggregate(size=Sum("size_bytes"))["size"] or 0) > room_of(owner.pk):
            raise NoRoom(settings.MAX_DOCUMENTS_BYTES)
        accesses = Access.objects.filter(collection=collection)
        accesses.filter(user=owner.pk).delete()
        accesses.update(owner=owner.pk)
        Collection.objects.filter(pk=collection.pk).update(owner=owner.pk)
        _touch(collection)


# --- the steps ------------------------------------------------------------------------------------


def _whom(user: Any, email: str | None, group_id: int | None) -> dict[str, Any]:
    if email is not None and group_id is not None:
        raise BadValue(gettext("Share with a person or with a group, not both at once."))
    if email is not None:
        return {"user": _person(user, email), "group": None}
    if group_id is not None:
        group = groups_of(user).filter(pk=group_id).first()
        if group is None:
            raise NotFound("group")
        return {"user": None, "group": group}
    if not may_share_with_everybody(user):
        raise NotAllowed(gettext("Only administrators share with everybody."))
    return {"user": None, "group": None}


def _person(user: Any, email: str) -> Any:
    people = get_user_model()._default_manager.filter(is_active=True)
    person = people.filter(email__iexact=email.strip()).first() if is_storable(email) else None
    if person is None:
        raise BadValue(gettext("Nobody here has this e-mail address."), "email")
    if person.pk == user.pk:
        raise BadValue(gettext("The collection is yours already."), "email")
    return person


def _touch(collection: Collection) -> None:
    """It comes first in the list, and what was answered from it is asked anew. Who publishes counts the
    version up as well, and may have been waited for."""
    rows = Collection.objects.filter(pk=collection.pk)
    rows.update(version=F("version") + 1, updated_at=timezone.now())
