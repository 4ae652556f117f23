"""Who has suspended an account: SCIM, LDAP and strikes each keep a mark beside those that they have, and
end their own suspensions alone. Without a mark it was an administrator."""

from django.utils import timezone

from moderation.models import Suspension
from webapp.directory_links import forget_left
from webapp.models import ScimPerson, User
from webapp.tenancy import as_system


def forget_marks(user: User) -> None:
    """An administrator decides: what SCIM, LDAP or strikes did before gives them no say in it."""
    forget_left(user)
    end_of_strikes(user)
    ScimPerson.objects.filter(user=user, is_disabled=True).update(
        is_disabled=False, deleted_at=None
    )


def is_disabled_by_scim(user: User) -> bool:
    return ScimPerson.objects.filter(user=user, is_disabled=True).exists()


def open_suspension(user: User) -> Suspension | None:
    """By which strikes keep this account closed."""
    with as_system():  # nobody is signed in who could be its owner
        return Suspension.objects.filter(owner=user.pk, ended_at=None).first()


def end_of_strikes(user: User) -> None:
    """They have no say any more in whether this account is closed."""
    with as_system():
        rows = Suspension.objects.filter(owner=user.pk, ended_at=None)
        rows.update(ended_at=timezone.now())
