"""Whose cache a question is looked up in."""

from dataclasses import dataclass
from uuid import UUID

from chat.models import Message, Personalisation
from chat.sources import picked_of
from retrieval.models import Collection


@dataclass(frozen=True, slots=True)
class CacheScope:
    """`collection`: of everybody who may read it; None: of `owner_id` alone. `versions` are those of all
    collections that the answer is made from."""

    owner_id: int
    collection: UUID | None
    versions: tuple[tuple[str, int], ...] = ()


def cache_scope(question: Message) -> CacheScope | None:
    """Of the first question of a chat; None: nobody has switched a cache on.

    What was attached is asked about once, and by one person. In the scope of the user.
    """
    picked, owner_id = picked_of(question.sources), question.conversation.owner_id
    if picked.documents:
        return None
    rows = list(Collection.objects.filter(pk__in=picked.collections).order_by("pk"))
    versions = tuple((str(row.pk), row.version) for row in rows)
    if len(rows) == 1 and rows[0].caches_answers:
        return CacheScope(owner_id, rows[0].pk, versions)
    own = Personalisation.objects.filter(pk=owner_id).first()
    return own_scope(own, versions) if own else None


def own_scope(
    own: Personalisation, versions: tuple[tuple[str, int], ...] = ()
) -> CacheScope | None:
    """The user's own cache, where it is switched on."""
    return CacheScope(own.owner_id, None, versions) if own.caches_answers else None
