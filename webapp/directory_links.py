"""The rows, allauth's of connected accounts, that link accounts to entries of the directory.

In `extra_data` is what is kept of the link itself: where the entry was last, and since when it is gone,
which tells a suspension by the directory from one by an administrator.
"""

from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat.storable import storable
from webapp.models import User

PROVIDER = "ldap"
_LEFT_AT = "left_at"


def links() -> Any:
    return SocialAccount.objects.filter(provider=PROVIDER)


def is_of_directory(user: Any) -> bool:
    """Whether the directory has this person's password. False where there is no directory (any more)."""
    return settings.DIRECTORY is not None and links().filter(user=user.pk).exists()


def locked_link(pk: int) -> SocialAccount | None:
    """As it is now. Before the row of its user, always, or two would wait for each other."""
    link: SocialAccount | None = links().select_for_update(of=("self",)).filter(pk=pk).first()
    return link


def lock_links_of(pk: int) -> None:
    """In a transaction that will lock this account, and may forget afterwards that it had left."""
    list(links().select_for_update(of=("self",)).filter(user=pk).order_by("pk"))


def note_there(link: SocialAccount, dn: str) -> bool:
    """Whether it was the directory that had suspended."""
    kept = _kept(link)
    had_left = bool(kept.pop(_LEFT_AT, None))
    _keep(link, kept | {"dn": storable(dn)})
    return had_left


def note_left(link: SocialAccount) -> None:
    _keep(link, _kept(link) | {_LEFT_AT: timezone.now().isoformat()})


def has_left(user: User) -> bool:
    """Whether the directory has suspended this person, and there is one."""
    rows = links().filter(user=user) if settings.DIRECTORY is not None else ()
    return any(_kept(link).get(_LEFT_AT) for link in rows)


def forget_left(user: User) -> bool:
    """Somebody else has decided since. Whether there was anything to forget."""
    with transaction.atomic():
        marked = links().filter(user=user, extra_data__has_key=_LEFT_AT)
        found = list(marked.select_for_update(of=("self",)))
        for link in found:
            kept = _kept(link)
            kept.pop(_LEFT_AT, None)
            _keep(link, kept)
    return bool(found)


def _kept(link: SocialAccount) -> dict[str, Any]:
    """An administrator may have typed something else than an object."""
    return dict(link.extra_data) if isinstance(link.extra_data, dict) else {}


def _keep(link: SocialAccount, kept: dict[str, Any]) -> None:
    link.extra_data = kept
    links().filter(pk=link.pk).update(extra_data=kept)
