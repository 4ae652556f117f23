"""What somebody sees whom strikes have suspended and who has given the right password: why, and how to
ask for another look at it.

Nobody is signed in here. A sealed note in the form says that the password was right, for an hour.
"""

from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chat.refusals import words_of
from moderation.models import Suspension
from moderation.reviewing import MAX_APPEAL_CHARS
from moderation.standings import counting_decisions
from webapp.error_pages import error_page
from webapp.models import User
from webapp.rate_limits import limited
from webapp.suspensions import open_suspension
from webapp.tenancy import as_user

_SALT = "webapp.suspended_page"
_LIFETIME_S = 3600


def page_of_suspended(request: HttpRequest, user: User) -> HttpResponse:
    """For who has proved to be this user."""
    suspension = open_suspension(user)
    if suspension is None:
        return redirect("account_inactive")
    return _page(request, suspension)


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
@limited("suspended")
def appeal_suspension(request: HttpRequest) -> HttpResponse:
    """Once for each suspension."""
    if request.method != "POST":
        return redirect("account_inactive")
    try:
        owner, pk = signing.loads(request.POST.get("proof", ""), salt=_SALT, max_age=_LIFETIME_S)
    except signing.BadSignature:
        return error_page(request, 400, _("This page was open for too long. Sign in anew."))
    text = request.POST.get("text", "").replace("\x00", "").strip()
    with as_user(owner):
        rows = Suspension.objects.filter(pk=pk, owner=owner, ended_at=None)
        if 0 < len(text) <= MAX_APPEAL_CHARS:
            rows.filter(appealed_at=None).update(appeal=text, appealed_at=timezone.now())
        suspension = rows.first()
    if suspension is None:
        return redirect("account_login")  # somebody has let them in since
    return _page(request, suspension)


def _page(request: HttpRequest, suspension: Suspension) -> HttpResponse:
    with as_user(suspension.owner_id):
        rows = counting_decisions(suspension.owner_id)[:20]
        found = [one["category"] for row in rows for one in row.reasons if one["action"] == "block"]
    context = {
        "suspension": suspension,
        "reasons": [words_of(name) for name in dict.fromkeys(found)],
        "proof": signing.dumps([suspension.owner_id, suspension.pk], salt=_SALT),
        "max_chars": MAX_APPEAL_CHARS,
    }
    return render(request, "account/suspended.html", context, status=403)
