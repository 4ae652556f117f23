"""Who has suspended an account: SCIM and LDAP each keep a mark beside those that they have, and end
their own suspensions alone. Without a mark it was an administrator."""

from webapp.directory_links import forget_left
from webapp.models import ScimPerson, User


def forget_marks(user: User) -> None:
    """An administrator decides: what SCIM or LDAP did before gives them no say in it any more."""
    forget_left(user)
    ScimPerson.objects.filter(user=user, is_disabled=True).update(is_disabled=False)


def is_disabled_by_scim(user: User) -> bool:
    return ScimPerson.objects.filter(user=user, is_disabled=True).exists()
