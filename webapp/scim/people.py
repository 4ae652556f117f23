"""What a directory may do with accounts.

It sees all of them, so that it can find who is here already. What it changes it manages from then on
(webapp/scim_models.py), with these bounds:

- An account that it made is its own: it may give it another address, and delete it.
- One that it found here it names and disables, and never gives another address, which would hand it
  to somebody else. Where its address is not confirmed it only disables it, for anybody may have signed
  up with it.
- Of an administrator it changes no address, and the last one stays as active as they are.
- It enables only whom it has disabled (webapp/scim/activity.py).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from scim2_models import (
    ForbiddenException,
    InvalidValueException,
    MutabilityException,
    UniquenessException,
)

from webapp.addresses import readdress
from webapp.administrators import locked_with_administrators
from webapp.directory_links import lock_links_of
from webapp.handover import shares_something
from webapp.models import ScimPerson, User
from webapp.own_data import delete as delete_account
from webapp.scim import resources
from webapp.scim.activity import set_active, suspend
from webapp.scim.addresses import id_of, missing
from webapp.scim.audit import Action, Kind, note_change
from webapp.scim.texts import checked
from webapp.security_events import Kind as SecurityKind
from webapp.security_events import note_event
from webapp.sign_ins import end_all_sign_ins
from webapp.tenancy import as_user

logger = logging.getLogger(__name__)

_WAITS = "it shares collections or assistants: hand them over, and delete it in the console"

Change = Callable[[resources.User], resources.User]
"""Gives the resource as it shall be, of the one that is."""


def all_people() -> QuerySet[User]:
    """Without what the manager adds for the rights of who is signed in, and without whom the directory
    has deleted."""
    return _everybody().filter(scim__deleted_at=None)


def _everybody() -> QuerySet[User]:
    return QuerySet(User).select_related("scim")


def row_of(user: User) -> ScimPerson | None:
    """What the directory knows of this account; no query where it was selected along."""
    return getattr(user, "scim", None)


def facts_of(user: User) -> resources.User:
    """The account as a resource, without addresses and groups, which only an answer needs."""
    row = row_of(user)
    name = resources.Name(
        given_name=(row and row.given_name) or None, family_name=(row and row.family_name) or None
    )
    return resources.User(
        id=id_of("user", user.pk),
        external_id=(row and row.external_id) or None,
        user_name=row.user_name if row else user.email,
        name=name if name.given_name or name.family_name else None,
        display_name=user.name or None,
        active=user.is_active,
        emails=[resources.Email(value=user.email, type="work", primary=True)],
    )


def create_person(wanted: resources.User) -> int:
    """The id. Raises UniquenessException, InvalidValueException, and makes nothing then."""
    facts = _Facts.of(wanted, None)
    if not facts.email:
        raise InvalidValueException(detail="emails or userName must hold an e-mail address.")
    is_active = wanted.active is not False
    with transaction.atomic():
        _check_free(facts, None)
        try:
            with transaction.atomic():
                user = User.objects.create_user(
                    facts.email, None, name=facts.display_name, is_active=is_active
                )
                # The directory vouches for it, as an administrator does in the console.
                EmailAddress.objects.create(
                    user=user, email=user.email, verified=True, primary=True
                )
                _save_row(ScimPerson(user=user, is_made=True, is_disabled=not is_active), facts)
        except IntegrityError:  # somebody else made it just now
            raise _taken() from None
        note_change(Action.MADE, Kind.PERSON, user.pk, user.email)
    return user.pk


def change_person(pk: int, change: Change) -> None:
    """Raises NotFoundException, UniquenessException, MutabilityException, ForbiddenException,
    ConflictException for the last administrator, and what `change` raises; nothing has changed then."""
    with transaction.atomic():
        user = _locked(pk)
        before = facts_of(user)
        row = row_of(user)
        if _is_proved(user, row):
            wanted = change(before.model_copy(deep=True))
        else:
            wanted = _only_disabled(before, change)
        if row is None:
            note_change(Action.FOUND, Kind.PERSON, user.pk, user.email)
            row = ScimPerson(user=user, user_name=user.email)
        facts = _Facts.of(wanted, before)
        _check_free(facts, user.pk)
        told = [*set_active(user, row, wanted.active), *_set_names(user, row, facts)]
        told += _set_address(user, row, facts.email)
        if told:
            note_change(Action.CHANGED, Kind.PERSON, user.pk, user.email, "; ".join(told))
    if wanted.active is False:
        end_all_sign_ins(user)


def delete_person(pk: int) -> None:
    """The account with all that is its owner's, as its owner would; but where others would miss what it
    shares it is only closed, and waits for an administrator. Either way the directory knows it no more.
    Raises NotFoundException, ForbiddenException for an account that the directory did not make,
    ConflictException."""
    with transaction.atomic():
        user = _locked(pk)
        row = row_of(user)
        if row is None or not row.is_made:
            raise ForbiddenException(
                detail="The directory did not make this account; it can disable it."
            )
        suspend(user)
        is_missed = shares_something(user)
        note_change(Action.DELETED, Kind.PERSON, user.pk, user.email, _WAITS if is_missed else "")
        if is_missed:
            _let_wait(user, row)
    end_all_sign_ins(user)
    if not is_missed:
        with as_user(user.pk):
            delete_account(user)


def _let_wait(user: User, row: ScimPerson) -> None:
    row.is_disabled, row.deleted_at = True, timezone.now()
    row.save(update_fields=["is_disabled", "deleted_at"])
    user.groups.remove(*user.groups.filter(scim__isnull=False))
    logger.warning("the directory has deleted user %s, who is only suspended: %s", user.pk, _WAITS)


def may_be_member() -> Q:
    """Of a group of the directory's: whom it has made, or whose address is confirmed."""
    confirmed = EmailAddress.objects.filter(verified=True)
    return Q(scim__is_made=True) | Q(pk__in=confirmed.values("user_id"))


# --- the steps of a change ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is kept of a resource, checked. `email` is empty where none is given."""

    user_name: str
    external_id: str
    given_name: str
    family_name: str
    display_name: str
    email: str

    @classmethod
    def of(cls, wanted: resources.User, before: resources.User | None) -> "_Facts":
        name = wanted.name or resources.Name()
        given = checked(name.given_name, 120, "name.givenName")
        family = checked(name.family_name, 120, "name.familyName")
        user_name = checked(wanted.user_name, 254, "userName")
        if not user_name:
            raise InvalidValueException(detail="userName must not be empty.")
        return cls(
            user_name=user_name,
            external_id=checked(wanted.external_id, 255, "externalId"),
            given_name=given,
            family_name=family,
            display_name=_display_name(wanted, before, f"{given} {family}".strip()),
            email=_email_of(wanted),
        )


def _display_name(wanted: resources.User, before: resources.User | None, full: str) -> str:
    """One that was made of the names follows them."""
    given = checked(wanted.display_name, 120, "displayName")
    if before and before.name and given == before.display_name:
        was = f"{before.name.given_name or ''} {before.name.family_name or ''}".strip()
        given = "" if given == was else given
    return given or full[:120]


def _email_of(wanted: resources.User) -> str:
    """The primary one, the one for work, the first."""
    ranked = sorted(
        wanted.emails or [], key=lambda one: (not one.primary, (one.type or "").lower() != "work")
    )
    email = checked(ranked[0].value if ranked else "", 254, "emails.value").lower()
    if email:
        try:
            validate_email(email)
        except ValidationError:
            raise InvalidValueException(
                detail="emails.value, or else userName, must be an e-mail address."
            ) from None
    return email


def _locked(pk: int) -> User:
    lock_links_of(pk)
    user = locked_with_administrators(all_people(), pk)
    if user is None:
        raise missing("user")
    return user


def _is_proved(user: User, row: ScimPerson | None) -> bool:
    """Whether this is surely the person whom the directory means."""
    is_made = row is not None and row.is_made
    return is_made or EmailAddress.objects.filter(user=user, verified=True).exists()


def _only_disabled(before: resources.User, change: Change) -> resources.User:
    """To be disabled, nobody has to be who they say; that is then all that happens, so that no name that
    comes along keeps somebody in. Raises ForbiddenException for anything else."""
    unsaid = before.model_copy(deep=True, update={"active": None})
    if change(unsaid).active is not False:
        raise ForbiddenException(
            detail="The address of this account is not confirmed: whoever has it may not be the person"
            " that you mean. An administrator can confirm it in the console, under E-mail addresses."
        )
    return before.model_copy(update={"active": False})


def _check_free(facts: _Facts, pk: int | None) -> None:
    others = _everybody() if pk is None else _everybody().exclude(pk=pk)
    same_name = Q(scim__user_name__iexact=facts.user_name)
    same_name |= Q(scim__isnull=True, email__iexact=facts.user_name)
    same_address = Q(email__iexact=facts.email) if facts.email else Q(pk__in=())
    if others.filter(same_name | same_address).exists():
        raise _taken()


def _taken() -> UniquenessException:
    return UniquenessException(detail="There is an account of that userName or address already.")


def _set_names(user: User, row: ScimPerson, facts: _Facts) -> list[str]:
    told = [
        f"{name}: {getattr(row, name)!r} → {getattr(facts, name)!r}"
        for name in ("user_name", "external_id", "given_name", "family_name")
        if getattr(row, name) != getattr(facts, name)
    ]
    try:
        with transaction.atomic():
            _save_row(row, facts)
    except IntegrityError:
        raise _taken() from None
    if user.name != facts.display_name:
        told.append(f"name: {user.name!r} → {facts.display_name!r}")
        User.objects.filter(pk=user.pk).update(name=facts.display_name)
    return told


def _save_row(row: ScimPerson, facts: _Facts) -> None:
    row.user_name, row.external_id = facts.user_name, facts.external_id
    row.given_name, row.family_name = facts.given_name, facts.family_name
    row.save()


def _set_address(user: User, row: ScimPerson, email: str) -> list[str]:
    if not email or email == user.email.lower():
        return []
    if not row.is_made or user.is_staff or user.is_superuser:
        raise MutabilityException(
            detail="The address of an account that the directory did not make, or of an"
            " administrator, is changed by its owner."
        )
    try:
        with transaction.atomic():
            User.objects.filter(pk=user.pk).update(email=email)
            readdress(user, email)
    except IntegrityError:
        raise _taken() from None
    note_event(SecurityKind.ADDRESS, account=user.pk, how="changed by SCIM")
    return [f"email: {user.email!r} → {email!r}"]
