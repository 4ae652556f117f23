"""The last administrator: what directories do takes neither their account nor their rights, for nobody
could give them back."""

from django.db.models import Q, QuerySet

from webapp.models import User


def locked_with_administrators(people: QuerySet[User], pk: int) -> User | None:
    """This account, with the rows of all administrators for a lock: in one order, or two who change two
    of them would each wait for the other. In a transaction."""
    administrators = Q(is_superuser=True, is_active=True)
    rows = people.filter(Q(pk=pk) | administrators).order_by("pk")
    return {user.pk: user for user in rows.select_for_update(of=("self",))}.get(pk)


def is_last_administrator(user: User) -> bool:
    """With those locks, that stays so."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    return user.is_superuser and user.is_active and not others.exists()
