"""Proofs, anew, of who it is: asked before what would outlive a session that was left open or stolen."""

from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _

FRESH_SIGN_IN_S = 15 * 60


def proved_lately(request: HttpRequest) -> bool:
    """Who has neither password nor second step cannot prove it anew here, and has to sign in anew.
    Whoever has one of them is asked for it by allauth."""
    if get_reauthentication_flows(request.user):
        return True
    records = get_authentication_records(request, request.user)
    since_s = timezone.now().timestamp() - FRESH_SIGN_IN_S
    return any(record["at"] > since_s for record in records)


def sign_in_again(request: HttpRequest) -> HttpResponse:
    """What to do, and the way there and back."""
    back = urlencode({"next": request.get_full_path()})
    way = urlencode({"next": f"{reverse('account_login')}?{back}"})
    context = {
        "heading": _("Sign in again"),
        "here": "security",
        "way": f"{reverse('account_logout')}?{way}",
    }
    response = render(request, "settings/sign_in_again.html", context, status=403)
    response["Cache-Control"] = "no-store"
    return response
