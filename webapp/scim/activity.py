"""Who may come in, as far as SCIM says.

It enables only whom it has disabled: a suspension in the console is the console's to end, one by LDAP
(webapp/directory_sync.py) is LDAP's, and one by strikes a reviewer's. What SCIM says of somebody whom
one of the last two has suspended is kept, so that none opens what another has closed.
"""

from scim2_models import ConflictException

from webapp.directory_links import forget_left, has_left
from webapp.models import ScimPerson, User
from webapp.own_data import LastAdministrator, suspend_for_good
from webapp.scim.audit import Action, Kind, note_change
from webapp.security_events import Kind as SecurityKind
from webapp.security_events import note_event
from webapp.suspensions import end_of_strikes, open_suspension


def set_active(user: User, row: ScimPerson, wanted: bool | None) -> list[str]:
    """Silent where it is so already, and where the console has suspended. What else there is to tell.
    The caller saves the row. Raises ConflictException."""
    if user.is_active:
        _of_active(user, row, wanted)
    elif wanted is False and not row.is_disabled and (has_left(user) or open_suspension(user)):
        row.is_disabled = True
        note_change(Action.DISABLED, Kind.PERSON, user.pk, user.email)
    elif wanted and row.is_disabled:
        row.is_disabled = False
        if has_left(user):
            return ["active: it is LDAP that keeps this account suspended"]
        if open_suspension(user):
            return ["active: it is moderation that keeps this account suspended"]
        User.objects.filter(pk=user.pk).update(is_active=True)
        note_event(SecurityKind.LET_IN, account=user.pk, how="by SCIM")
        note_change(Action.ENABLED, Kind.PERSON, user.pk, user.email)
    return []


def _of_active(user: User, row: ScimPerson, wanted: bool | None) -> None:
    row.is_disabled = False  # of before: somebody has enabled the account since
    if wanted is False:
        suspend(user)
        forget_left(user)
        end_of_strikes(user)
        row.is_disabled = True
        note_change(Action.DISABLED, Kind.PERSON, user.pk, user.email)


def suspend(user: User) -> None:
    """Raises ConflictException for the last administrator."""
    try:
        suspend_for_good(user)
    except LastAdministrator:
        raise ConflictException(
            detail="This is the last active administrator. Make somebody else one first."
        ) from None
