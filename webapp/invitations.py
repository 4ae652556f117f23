"""Making accounts: who may, and the invitations that let people in."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256

from allauth.account.adapter import get_adapter
from allauth.core.exceptions import SignupClosedException
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import override
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.error_pages import error_page
from webapp.models import Invitation, User
from webapp.signup import current_policy
from webapp.site_address import site_url

LIFETIME = timedelta(days=14)
LETTER = "account/email/invitation"
_SESSION_KEY = "invitation"


def invite(
    *, email: str = "", tier: str = "free", lifetime: timedelta = LIFETIME
) -> tuple[Invitation, str]:
    """The row, and the link, which is shown once and kept nowhere."""
    row = Invitation(email=email, tier_id=tier, expires_at=timezone.now() + lifetime)
    return row, site_url() + issue(row)


def issue(row: Invitation) -> str:
    """Save a new row; the path of its link."""
    token = secrets.token_urlsafe(32)
    row.email = row.email.strip().lower()
    row.secret_hash = _hash(token)
    row.save()
    return reverse("invitation", args=[token])


def groups_to_give() -> QuerySet[Group]:
    """Groups that an invitation may lead to: those that give no right in the console, and whose members
    the directory does not choose."""
    return Group.objects.filter(permissions=None).exclude(scim__is_made=True).order_by("name")


def send_invitation(row: Invitation, link: str, *, language: str) -> None:
    """A letter to whom the row is for, sent once the row is there for good. It names who invites, where
    somebody asks for it."""

    def send() -> None:
        with override(language):
            adapter.send_mail(LETTER, row.email, context)

    adapter = get_adapter()  # knows this request, which is over once the row is there
    user = adapter.request.user if adapter.request else None
    inviter = str(user) if user and user.is_authenticated else ""
    context = {"link": link, "expires_at": row.expires_at, "inviter": inviter}
    transaction.on_commit(send)


def invitation_of(request: HttpRequest) -> Invitation | None:
    """The usable one that this browser has opened."""
    pk = request.session.get(_SESSION_KEY)
    if pk is None or not current_policy().takes_invitations:
        return None
    return Invitation.objects.usable().filter(pk=pk).first()


def signup_is_open(request: HttpRequest, *, is_vouched: bool = False) -> bool:
    """Whether a new account may be made here, of whatever address.

    Nobody signs up before the administrator exists: being first gives no rights. An address of a
    domain proves something when it will be confirmed, or when a sign-in provider vouches for it.
    """
    mode = current_policy().mode
    if mode == "closed" or not User.objects.has_administrator():
        return False
    if mode == "open" or (mode == "domain" and (is_vouched or settings.SMTP_HOST)):
        return True
    return invitation_of(request) is not None


def check_admission(request: HttpRequest, email: str) -> None:
    """Raises ValidationError, in words, for an address that may not come in."""
    invitation = invitation_of(request)
    if invitation is not None:
        if invitation.email and invitation.email != email.lower():
            raise ValidationError(_("The invitation is for another e-mail address."))
        return
    policy = current_policy()
    if not policy.admits(email):
        domains = ", ".join(f"@{domain}" for domain in policy.domains)
        raise ValidationError(
            _("Only addresses of %(domains)s may sign up here.") % {"domains": domains}
        )


def admit(request: HttpRequest, make: Callable[[], User], *, is_vouched: bool = False) -> User:
    """Make an account, and use the browser's invitation up in the same transaction.

    Raises allauth's SignupClosedException, and then there is no account. Of any number that come at
    the same time with one invitation one succeeds by it; the others are as if they had none.
    `is_vouched` says that a sign-in provider knows the address.
    """
    with transaction.atomic():
        invitation = _locked(request)
        user = make()
        if invitation is None:
            # Asked again: what let the form be shown may have been the invitation.
            is_open = signup_is_open(request, is_vouched=is_vouched)
            if not is_open or not current_policy().admits(user.email):
                raise SignupClosedException
        else:
            _use(invitation, user)
    request.session.pop(_SESSION_KEY, None)
    return user


def _locked(request: HttpRequest) -> Invitation | None:
    found = invitation_of(request)
    if found is None:
        return None
    # The row is the lock: the others wait here, and then find it used.
    return Invitation.objects.usable().select_for_update().filter(pk=found.pk).first()


def _use(invitation: Invitation, user: User) -> None:
    if invitation.email and invitation.email != user.email.lower():
        raise SignupClosedException
    user.tier_id = invitation.tier_id
    user.save(update_fields=["tier"])
    # Of those that are listed now: one may have got permissions since the letter was written.
    user.groups.add(*groups_to_give().filter(pk__in=[invitation.group_id]))
    invitation.used_by = user
    invitation.used_at = timezone.now()
    invitation.save(update_fields=["used_by", "used_at"])


@login_not_required
@require_GET
@never_cache
def open_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Remember the invitation in the session, so that its token leaves the address bar."""
    found = Invitation.objects.usable().filter(secret_hash=_hash(token)).first()
    if found is None or not current_policy().takes_invitations:
        message = _("This invitation has been used, or is not valid any more. Ask for another one.")
        return error_page(request, 404, message)
    if request.user.is_authenticated:
        message = _("You have an account here already. The invitation is for somebody without one.")
        return error_page(request, 400, message)
    request.session[_SESSION_KEY] = found.pk
    return redirect("account_signup")


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
