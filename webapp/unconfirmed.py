"""Accounts whose address nobody has confirmed: anybody may have signed up with it.

Where a provider does not vouch for addresses, whoever comes from it may name somebody else's. What they
have connected would open the account for good, once the owner of the mailbox has made it their own.
"""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.utils import user_pk_to_url_str
from allauth.socialaccount.models import SocialAccount
from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from webapp.models import User
from webapp.security_events import Kind, note_event
from webapp.sign_ins import end_other_sign_ins
from webapp.tenancy import as_user


def note_reset(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """A letter has given the account another password."""
    if not _is_confirmed(user):
        _part_from_others(request, user)


def note_confirmation(request: HttpRequest, user: User) -> None:
    """A letter is about to confirm the address. In the browser of who signed up it was theirs."""
    if _is_confirmed(user) or request.user.pk == user.pk or _signs_up(request, user):
        return
    if _part_from_others(request, user):
        words = _(
            "The address is confirmed, and the sign-up was begun in another browser. Choose a password"
            " by “Forgot your password?”, and connect other ways to sign in in the settings."
        )
        messages.warning(request, words)


def _is_confirmed(user: User) -> bool:
    return bool(EmailAddress.objects.filter(user=user, verified=True).exists())


def _signs_up(request: HttpRequest, user: User) -> bool:
    """However long ago: allauth itself lets in for a quarter of an hour."""
    pending = request.session.get("account_login")
    return isinstance(pending, dict) and pending.get("user_pk") == user_pk_to_url_str(user)


def _part_from_others(request: HttpRequest, user: User) -> bool:
    """Whether anything was connected."""
    num_parted, _by_model = SocialAccount.objects.filter(user=user).delete()
    if num_parted:
        how = "parted from all: nobody had confirmed the address"
        note_event(Kind.CONNECTION, account=user.pk, how=how, request=request)
    with as_user(user.pk):
        end_other_sign_ins(user, request.session.session_key)
    return bool(num_parted)
