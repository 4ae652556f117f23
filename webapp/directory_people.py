"""The accounts of people in the directory (webapp/directory.py).

An account is linked to an entry by what the directory calls it for good, in allauth's rows of connected
accounts, and never by an e-mail address. What the directory knows of somebody is brought up to date with
each sign-in, and by webapp/directory_sync.py between them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.administrators import is_last_administrator, locked_with_administrators
from webapp.directory_links import PROVIDER, links, locked_link, note_left, note_there
from webapp.directory_rights import refresh_rights, takes_the_last
from webapp.models import SignIn, User
from webapp.security_events import Kind, note_event
from webapp.sign_ins import end_sign_ins
from webapp.suspensions import forget_marks, is_disabled_by_scim

if TYPE_CHECKING:
    from webapp.directory import Entry

logger = logging.getLogger(__name__)

REFUSED = "directory_refused"


def come_in(entry: Entry) -> User:
    """The account of who has proved to be this entry, up to date; made where there is none.

    Being in the directory is the admission, whatever the sign-up policy says. Raises ValidationError, in
    words, where there can be no account.
    """
    try:
        return _come_in(entry)
    except (IntegrityError, ValidationError) as error:
        # Of two first sign-ins at the same moment one finds the address taken by the other.
        if isinstance(error, ValidationError) and not links().filter(uid=entry.unique_id).exists():
            raise
        return _come_in(entry)


def connect(user: User, entry: Entry) -> None:
    """Link an account that there is already. Raises ValidationError, in words."""
    is_taken = links().filter(uid=entry.unique_id).exclude(user=user).exists()
    if is_taken or links().filter(user=user).exclude(uid=entry.unique_id).exists():
        raise _refusal(_("One of the two is connected already, with another account."))
    with transaction.atomic():
        if takes_the_last(_locked_user(user.pk), entry.groups):
            raise _refusal(
                _(
                    "You are the only administrator, and by the directory you would be none. Make"
                    " somebody else one first."
                )
            )
        link, _is_new = (
            links()
            .select_for_update(of=("self",))
            .get_or_create(uid=entry.unique_id, defaults={"user": user, "provider": PROVIDER})
        )
        refresh(link, entry)


def refresh(link: SocialAccount, entry: Entry, *, keeps_rights: bool = False) -> User:
    """Bring an account up to date with its entry. In a transaction, with the link locked."""
    user = _locked_user(link.user_id)
    if note_there(link, entry.dn):
        user.is_active = user.is_active or not is_disabled_by_scim(user)
        if user.is_active:
            note_event(Kind.LET_IN, account=user.pk, how="is in the directory again")
        logger.info("user %s is in the directory again, active: %s", user.pk, user.is_active)
    user.name = entry.name[:120] or user.name
    if user.has_usable_password():
        user.set_unusable_password()
    _refresh_address(user, entry.email)
    if not keeps_rights:
        refresh_rights(user, entry.groups)
    user.save()
    return user


def suspend(link: SocialAccount) -> bool:
    """Of somebody who has left: nothing opens any more, API keys neither, until the entry comes back.
    False where they are not active any more, or the last administrator. In the system's scope."""
    with transaction.atomic():
        now, user = locked_link(link.pk), _locked_user(link.user_id)
        if now is None or not user.is_active:
            return False
        if is_last_administrator(user):
            logger.error("the last administrator, user %s, has left the directory: kept", user.pk)
            return False
        User.objects.filter(pk=user.pk).update(is_active=False)
        note_event(Kind.SUSPENSION, account=user.pk, how="has left the directory")
        forget_marks(user)  # of before: somebody has enabled the account since
        note_left(now)
    end_sign_ins(SignIn.objects.filter(user=user))
    logger.warning("user %s is not in the directory any more, and suspended", user.pk)
    return True


def _locked_user(pk: int) -> User:
    user = locked_with_administrators(User.objects.all(), pk)
    assert user is not None, "accounts take their links along"
    return user


# --- coming in ------------------------------------------------------------------------------------


def _come_in(entry: Entry) -> User:
    with transaction.atomic():
        link = links().select_for_update().filter(uid=entry.unique_id).first()
        if link is None:
            link = _new_account(entry)
        user = refresh(link, entry)
        links().filter(pk=link.pk).update(last_login=timezone.now())
    return user


def _new_account(entry: Entry) -> SocialAccount:
    if not _is_address(entry.email):
        raise _refusal(
            _(
                "The directory knows no e-mail address of yours, and an account needs one. Ask your"
                " administrator."
            )
        )
    if _is_taken(entry.email):
        raise _refusal(
            _(
                "There is an account with your address here already. Sign in to it, and connect it with"
                " the directory in the settings."
            )
        )
    user = User.objects.create_user(entry.email, None, name=entry.name[:120])
    logger.info("user %s came in by the directory", user.pk)
    link: SocialAccount = SocialAccount.objects.create(
        user=user, provider=PROVIDER, uid=entry.unique_id
    )
    return link


def _refusal(words: str) -> ValidationError:
    return ValidationError(words, code=REFUSED)


def _is_address(email: str) -> bool:
    try:
        validate_email(email)
    except ValidationError:
        return False
    return len(email) <= 254


def _is_taken(email: str, user: User | None = None) -> bool:
    """By somebody else than `user`."""
    people = User.objects.filter(email__iexact=email)
    addresses = EmailAddress.objects.filter(email__iexact=email, verified=True)
    if user is not None:
        people, addresses = people.exclude(pk=user.pk), addresses.exclude(user=user)
    return people.exists() or addresses.exists()


# --- up to date -----------------------------------------------------------------------------------


def _refresh_address(user: User, email: str) -> None:
    """The directory vouches for it. One that is another account's already is not taken from there."""
    if _is_address(email) and not _is_taken(email, user):
        if email.lower() != user.email.lower():
            note_event(Kind.ADDRESS, account=user.pk, how="changed by LDAP")
        user.email = email
    elif email != user.email:
        logger.warning("user %s keeps the address: the directory's cannot be had", user.pk)
    EmailAddress.objects.filter(user=user).exclude(email=user.email).delete()
    EmailAddress.objects.update_or_create(
        user=user, email=user.email, defaults={"verified": True, "primary": True}
    )
