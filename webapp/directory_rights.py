"""What groups of the directory give here: VITRINE_LDAP_GROUPS, _ADMINISTRATORS and _TIERS.

What these do not name stays as the admin console has it.
"""

import logging

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from webapp.administrators import is_last_administrator
from webapp.directory_settings import DirectorySettings
from webapp.models import Tier, User
from webapp.security_events import Kind, note_event

logger = logging.getLogger(__name__)


def refresh_rights(user: User, names: frozenset[str]) -> None:
    """By the names, casefolded, of this person's groups there. The caller saves the user, and has
    locked them with the administrators."""
    config = settings.DIRECTORY
    if config is None:
        return
    _refresh_groups(config, user, {config.groups[name] for name in names & set(config.groups)})
    was_administrator = user.is_superuser
    is_administrator = config.administrators in names
    if takes_the_last(user, names):
        logger.error("the directory would take the last administrator, user %s: kept", user.pk)
    elif config.administrators and is_administrator != was_administrator:
        user.is_staff = user.is_superuser = is_administrator
        note_event(Kind.RIGHTS, account=user.pk, how=f"administrator by LDAP: {is_administrator}")
        logger.warning(
            "the directory makes administrator of user %s: %s", user.pk, is_administrator
        )
    user.tier_id = _tier(config, user, names, was_administrator)


def takes_the_last(user: User, names: frozenset[str]) -> bool:
    """Whether with these groups nobody would be administrator any more."""
    decides = settings.DIRECTORY is not None and settings.DIRECTORY.administrators
    return bool(decides and decides not in names and is_last_administrator(user))


def with_given_rights(config: DirectorySettings) -> QuerySet[User]:
    """Who has what the directory gives, and would lose it without groups there."""
    given = Q(groups__name__in=set(config.groups.values()))
    if config.administrators:
        given |= Q(is_superuser=True)
    if config.tiers:
        given |= ~Q(tier="free")
    return User.objects.filter(given).distinct()


def _refresh_groups(config: DirectorySettings, user: User, wanted: set[str]) -> None:
    named = set(config.groups.values())
    there = set(user.groups.filter(name__in=named).values_list("name", flat=True))
    if there - wanted:
        user.groups.remove(*Group.objects.filter(name__in=there - wanted))
    for name in sorted(wanted - there):
        user.groups.add(Group.objects.get_or_create(name=name)[0])


def _tier(
    config: DirectorySettings, user: User, names: frozenset[str], was_administrator: bool
) -> str:
    """The first that VITRINE_LDAP_TIERS gives; without one the administrators', or the free one where
    the directory decides. It takes away what it has given."""
    before = str(user.tier_id)
    told = next((tier for group, tier in config.tiers if group in names), "")
    if told and not Tier.objects.filter(slug=told).exists():
        logger.error("VITRINE_LDAP_TIERS names a tier %s, and there is none", told)
        return before
    if told:
        return told
    if user.is_superuser:
        return "admin" if config.tiers or not was_administrator else before
    was_given = was_administrator and before == "admin"
    return "free" if config.tiers or was_given else before
