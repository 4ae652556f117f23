"""Settings pages of API keys. A secret is shown once, in the answer to the form that made it.

Making one asks for the password again when that is long ago: a session that was left open must not
become a key that outlives it. Synchronous, since allauth sends the suspended form itself.
"""

from typing import Any

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from webapp.api_keys import create_api_key, revoke_api_key, rotate_api_key
from webapp.key_forms import KeyForm, NewKeyForm, values_of
from webapp.models import ApiKey, Feature, User

MAX_KEYS = 100


def keys(request: HttpRequest) -> HttpResponse:
    """All that open something, and below them those that do no more."""
    rows = list(keys_of(request.user))
    now = timezone.now()
    context = {
        "heading": gettext("API keys"),
        "here": "keys",
        "usable": [row for row in rows if row.is_usable(now)],
        "ended": [row for row in rows if not row.is_usable(now)],
        "may_have_keys": may_have_keys(request.user),
    }
    return render(request, "settings/keys.html", context)


@never_cache
@sensitive_variables("secret")
@reauthentication_required  # type: ignore[untyped-decorator]
def new_key(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    if not may_have_keys(user):
        raise Http404
    form = NewKeyForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        if keys_of(user).filter(revoked_at=None).count() >= MAX_KEYS:
            form.add_error(None, gettext("There are many keys already. Revoke one first."))
        else:
            key, secret = create_api_key(user, **form.values())
            return _show_secret(request, key, secret)
    return _form(request, form, gettext("New API key"))


def edit_key(request: HttpRequest, key_id: int) -> HttpResponse:
    key = get_object_or_404(keys_of(request.user), pk=key_id, revoked_at=None)
    form = KeyForm(request.POST or None, initial=values_of(key))
    if request.method == "POST" and form.is_valid():
        for name, value in form.cleaned_data.items():
            setattr(key, name, value)
        key.save(update_fields=list(form.cleaned_data))
        messages.success(request, gettext("Saved."))
        return redirect("keys")
    return _form(request, form, key.name or key.prefix, key=key)


def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Asks first: whatever uses the key stops."""
    key = get_object_or_404(keys_of(request.user), pk=key_id, revoked_at=None)
    name = {"name": key.name or key.prefix}
    if request.method != "POST":
        return _question(request, key, "revoke", gettext("Revoke %(name)s?") % name)
    revoke_api_key(key)
    messages.success(request, gettext("%(name)s opens nothing any more.") % name)
    return redirect("keys")


@never_cache
@sensitive_variables("secret")
@reauthentication_required  # type: ignore[untyped-decorator]
def rotate_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Another secret for the same key, at once; asks first, also after a fresh sign-in."""
    key = get_object_or_404(keys_of(request.user), pk=key_id, revoked_at=None)
    if request.method != "POST":
        title = gettext("A new secret for %(name)s?") % {"name": key.name or key.prefix}
        return _question(request, key, "rotate", title)
    return _show_secret(request, key, rotate_api_key(key))


def keys_of(user: Any) -> QuerySet[ApiKey]:
    """Nobody else's, the newest first."""
    return ApiKey.objects.filter(user=user.pk).order_by("-created_at", "-pk")


def may_have_keys(user: User | Any) -> bool:
    return Feature.API_KEYS in user.tier.features


def _show_secret(request: HttpRequest, key: ApiKey, secret: str) -> HttpResponse:
    context = {"heading": key.name, "here": "keys", "key": key, "secret": secret}
    return render(request, "settings/key_secret.html", context)


def _question(request: HttpRequest, key: ApiKey, action: str, heading: str) -> HttpResponse:
    context = {"heading": heading, "here": "keys", "key": key, "action": action}
    return render(request, "settings/key_question.html", context)


def _form(
    request: HttpRequest, form: KeyForm, heading: str, key: ApiKey | None = None
) -> HttpResponse:
    context = {"form": form, "heading": heading, "here": "keys", "key": key}
    return render(request, "settings/key_form.html", context, status=400 if form.errors else 200)
