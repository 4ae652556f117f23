"""Taking one's data along, and ending one's account."""

import json
from collections.abc import AsyncGenerator
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django import forms
from django.contrib.admin.models import LogEntry
from django.contrib.auth import logout
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from chat.db import in_db
from chat.farewell import let_go
from chat.streaming import ClosingStream
from chat.transfer import export
from chat.transfer.records import records_of
from moderation.models import Decision, PolicyVersion, Suspension
from webapp.models import Invitation, ScimPerson, SignIn, User
from webapp.rate_limits import limited
from webapp.security_events import Kind, events_of, note_event
from webapp.sign_ins import end_all_sign_ins, end_other_sign_ins
from webapp.tenancy import as_system, as_user


class LastAdministrator(Exception):
    """Nobody would be left who can make another one."""


# --- export ---------------------------------------------------------------------------------------


@require_GET
async def export_everything(request: HttpRequest) -> ClosingStream:
    """A zip: chats as they are imported again (docs/data.md), JSON for each sort of record, and the
    files of /v1/files."""
    await in_db(note_event)(Kind.EXPORT, account=request.user.pk, request=request)
    name = content_disposition_header(True, f"vitrine-data-{timezone.now():%Y-%m-%d}.zip")
    return ClosingStream(
        _zipped(request.user),
        content_type="application/zip",
        headers={"Content-Disposition": name or "attachment", "Cache-Control": "no-store"},
    )


async def _zipped(user: Any) -> AsyncGenerator[bytes, None]:
    files = await in_db(_record_files)(user)
    kept = await in_db(export.kept_files)(user)
    async for piece in export.zipped(user, "json", export.Progress(), files, kept):
        yield piece


def _record_files(user: User) -> dict[str, bytes]:
    """By name. Written in the thread that reads them, one kind after the other: those of a person with
    many would hold up everybody on the event loop, for seconds."""
    return {
        "account.json": _json(account_of(user)),
        **{f"{name}.json": _json(value) for name, value in records_of(user)},
    }


def account_of(user: User) -> dict[str, Any]:
    """The account itself. Of keys and second steps what names them, never what opens."""
    facts = ("email", "name", "language", "tier_id", "date_joined", "last_login")
    key_facts = ("prefix", "name", "scopes", "created_at", "last_used_at", "expires_at")
    sign_in_facts = ("address", "user_agent", "created_at", "last_seen_at")
    step_facts = ("type", "created_at", "last_used_at")
    link_facts = ("provider", "uid", "date_joined", "last_login", "extra_data")
    directory_facts = ("user_name", "external_id", "given_name", "family_name", "created_at")
    return {
        **{name: getattr(user, name) for name in facts},
        "addresses": list(
            EmailAddress.objects.filter(user=user).values("email", "verified", "primary")
        ),
        "api_keys": list(user.api_keys.values(*key_facts, "revoked_at")),
        "sign_ins": list(SignIn.objects.filter(user=user).values(*sign_in_facts)),
        "second_steps": list(Authenticator.objects.filter(user=user).values(*step_facts)),
        "directory": list(ScimPerson.objects.filter(user=user).values(*directory_facts)),
        "connections": list(SocialAccount.objects.filter(user=user).values(*link_facts)),
        "groups": list(user.groups.values_list("name", flat=True)),
        "administrative_acts": [
            {"at": act.action_time, "what": str(act)}
            for act in LogEntry.objects.filter(user=user).order_by("pk")
        ],
        "security_events": events_of(user.pk),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1, cls=DjangoJSONEncoder).encode()


# --- end ------------------------------------------------------------------------------------------


class DeleteAccountForm(forms.Form):
    """The address is typed, so that nobody does it by a slip."""

    email = forms.CharField(
        label=gettext_lazy("To go on, type your e-mail address"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "dir": "ltr"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"].strip()
        if email.lower() != self.user.email.lower():
            raise forms.ValidationError(_("That is not the address of this account."))
        return email


@never_cache
@require_http_methods(["GET", "POST"])
@limited("delete_account")
@reauthentication_required(allow_get=False)  # type: ignore[untyped-decorator]
def delete_account(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    form = DeleteAccountForm(request.POST or None, user=user)
    if request.method != "POST" or not form.is_valid():
        return _page(request, form, status=400 if form.errors else 200)
    try:
        suspend_for_good(user)
    except LastAdministrator:
        form.add_error(
            None,
            _("You are the only administrator. Make somebody else one first, or nobody could."),
        )
        return _page(request, form, status=400)
    get_adapter().send_notification_mail("account/email/account_deleted", user)
    end_other_sign_ins(user, request.session.session_key)
    delete(user)
    logout(request)
    return redirect("account_login")


def suspend_for_good(user: User) -> None:
    """From here on no door knows this account. Raises LastAdministrator.

    The rows of all administrators are the lock: two last ones cannot leave at the same moment.
    """
    with transaction.atomic():
        administrators = User.objects.select_for_update(of=("self",)).filter(
            is_superuser=True, is_active=True
        )
        ids = set(administrators.order_by("pk").values_list("pk", flat=True))
        if ids == {user.pk}:
            raise LastAdministrator
        if User.objects.filter(pk=user.pk, is_active=True).update(is_active=False):
            note_event(Kind.SUSPENSION, account=user.pk)


def end_account(user: User) -> None:
    """Of somebody else, who is asked nothing. No door knows them from the first moment on, and it may be
    done again after a crash. Raises LastAdministrator."""
    suspend_for_good(user)
    end_all_sign_ins(user)
    with as_user(user.pk):
        delete(user)


def delete(user: User) -> None:
    """Everything of this person. In their own scope; the row itself needs the system's, for what goes
    along with it is of every sort."""
    let_go(user)
    with as_system(), transaction.atomic():
        _keep_acts(user)
        Invitation.objects.filter(used_by=user).delete()  # it holds the address
        User.objects.get(pk=user.pk).delete()
        note_event(Kind.DELETION, account=user.pk)


def _keep_acts(user: User) -> None:
    """What somebody changed or judged in the admin console stays on record: who misused it could else
    wipe that out by leaving. An account that nobody can enter signs it, with the number of theirs."""
    acts = [
        (LogEntry.objects.filter(user=user), "user"),
        (PolicyVersion.objects.filter(author=user), "author"),
        (Decision.objects.filter(reviewer=user), "reviewer"),
        (Suspension.objects.filter(reviewer=user), "reviewer"),
    ]
    if not any(rows.exists() for rows, _ in acts):
        return
    former = User.objects.create_user(
        f"former-{user.pk}@vitrine.invalid",
        name=f"Former administrator {user.pk}",
        is_active=False,
    )
    for rows, author in acts:
        rows.update(**{author: former})


def _page(request: HttpRequest, form: DeleteAccountForm, *, status: int) -> HttpResponse:
    context = {"form": form, "heading": _("Delete the account"), "here": "account"}
    return render(request, "settings/delete_account.html", context, status=status)
