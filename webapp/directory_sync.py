"""Bringing the accounts of people in the directory up to date between their sign-ins.

Who is gone from there, or does not match VITRINE_LDAP_USER_FILTER any more, is suspended; who comes back
is let in again. A directory that does not answer changes nothing, and what is wrong with one account or
entry keeps none of the others.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from allauth.socialaccount.models import SocialAccount
from django.db import transaction

from webapp import directory
from webapp.connections import release_connections
from webapp.directory_ids import is_id
from webapp.directory_links import links, locked_link
from webapp.directory_people import refresh, suspend
from webapp.directory_rights import with_given_rights
from webapp.directory_settings import DirectorySettings
from webapp.models import User

logger = logging.getLogger(__name__)


class TooManyGone(Exception):
    """More than half of the people: rather a mistake of somebody's than a farewell."""


@dataclass(frozen=True, slots=True)
class Synced:
    """`num_failed` are accounts that are not up to date; the log tells why."""

    num_there: int
    num_suspended: int
    num_failed: int


def sync(config: DirectorySettings, *, may_take_all: bool = False) -> Synced:
    """In the system's scope, outside of a transaction. Raises DirectoryUnavailable, and TooManyGone
    unless `may_take_all`; then nothing has changed. With that, all rights may go too."""
    everybody = list(links().order_by("pk"))
    release_connections()
    found = directory.entries(config, [link.uid for link in everybody])
    rows = _well_typed(config, everybody, found)
    gone = _gone(rows, found, may_take_all=may_take_all)
    # They first: whatever happens to the others, who has left is out.
    suspended = [_attempt(link, suspend) for link in gone]
    there = [link for link in rows if link.uid in found]
    keeps_rights = not may_take_all and _no_groups_are_seen(config, there, found)
    refreshed = [
        _attempt(link, lambda one: _refreshed(one, found[one.uid], keeps_rights)) for link in there
    ]
    num_failed = [*suspended, *refreshed].count(None) + len(everybody) - len(rows)
    return Synced(len(there), suspended.count(True), num_failed)


def _well_typed(
    config: DirectorySettings, everybody: list[SocialAccount], found: dict[str, directory.Entry]
) -> list[SocialAccount]:
    """Without links whose id an administrator has mistyped: it is none, or the directory has it in
    other letters. Nothing follows from those about the person."""
    known = {link.uid for link in everybody}
    in_other_letters = {uid.casefold() for uid in found if uid not in known}
    rows = []
    for link in everybody:
        if is_id(config, link.uid) and link.uid.casefold() not in in_other_letters:
            rows.append(link)
        else:
            words = (
                "user %s is left alone: under Connected accounts, %r is not as the directory has it"
            )
            logger.error(words, link.user_id, link.uid)
    return rows


def _gone(
    rows: list[SocialAccount], found: dict[str, directory.Entry], *, may_take_all: bool
) -> list[SocialAccount]:
    """Whom an administrator has suspended stays so, also when the entry goes and comes back."""
    active = set(User.objects.filter(is_active=True).values_list("pk", flat=True))
    gone = [link for link in rows if link.uid not in found and link.user_id in active]
    num_active = sum(link.user_id in active for link in rows)
    if len(gone) > max(1, num_active // 2) and not may_take_all:
        raise TooManyGone(
            f"{len(gone)} of {num_active} people are not in the directory any more: nobody is suspended."
            " If that is right, run manage.py ldap_sync --all."
        )
    return gone


def _no_groups_are_seen(
    config: DirectorySettings, there: list[SocialAccount], found: dict[str, directory.Entry]
) -> bool:
    """Of nobody who has rights by the directory: rather a lost permission there, or a wrong base, than
    that all of them have been taken out of every group."""
    groups = {link.user_id: found[link.uid].groups for link in there}
    given = set(with_given_rights(config).filter(pk__in=groups).values_list("pk", flat=True))
    if not given or any(groups[pk] for pk in given):
        return False
    logger.error(
        "the directory shows no group of anybody who has rights by one (%d people): all rights stay."
        " If that is right, run manage.py ldap_sync --all",
        len(given),
    )
    return True


def _refreshed(link: SocialAccount, entry: directory.Entry, keeps_rights: bool) -> bool:
    with transaction.atomic():
        now = locked_link(link.pk)
        if now is not None:
            refresh(now, entry, keeps_rights=keeps_rights)
    return now is not None


def _attempt(link: SocialAccount, step: Callable[[SocialAccount], bool]) -> bool | None:
    """None where it failed."""
    try:
        return step(link)
    except Exception:
        logger.exception("user %s is not up to date with the directory", link.user_id)
        return None
