"""Who has suspended an account: SCIM, LDAP and strikes each keep a mark beside those that they have, and
end their own suspensions alone. Without a mark it was an administrator."""

from django.utils import timezone

from moderation.models import Suspension
from webapp.directory_links import forget_left
from webapp.models import ScimPerson, User
from webapp.tenancy import as_system


def forget_marks(user: User) -> bool:
    """An administrator decides: what SCIM, LDAP or strikes did before gives them no say in it. Whether
    there was any."""
    by_ldap, by_strikes = forget_left(user), end_of_strikes(user)
    by_scim = ScimPerson.objects.filter(user=user, is_disabled=True).update(
        is_disabled=False, deleted_at=None
    )
    return by_ldap or by_strikes or bool(by_scim)


def is_disabled_by_scim(user: User) -> bool:
    return ScimPerson.objects.filter(user=user, is_disabled=True).exists()


def open_suspension(user: User) -> Suspension | None:
    """By which strikes keep this account closed."""
    with as_system():  # nobody is signed in who could be its owner
        return Suspension.objects.filter(owner=user.pk, ended_at=None).first()


def waits_for_handover(user: User) -> bool:
    """The directory has deleted this account, which is closed until somebody takes what it shares."""
    return ScimPerson.objects.filter(user=user).exclude(deleted_at=None).exists()


def end_of_strikes(user: User) -> bool:
    """They have no say any more in whether this account is closed. Whether they had."""
    with as_system():
        rows = Suspension.objects.filter(owner=user.pk, ended_at=None)
        return bool(rows.update(ended_at=timezone.now()))
