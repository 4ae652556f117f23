"""Sign-in with a provider (webapp/providers.py), on allauth.socialaccount.

An account is linked to a person by what the provider calls them for good (`sub`), never by an e-mail
address, but for what an organisation's directory has made (`_made_by_directory`). Any other account that
there is already is linked by who is signed in to it, and has just proved so. Whoever is new comes in by
the sign-up policy, with an address that somebody vouches for.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount import views
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, _build_apps_from_settings
from allauth.socialaccount.forms import SignupForm as StockSignupForm
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers import registry
from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, HttpResponseRedirectBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache

from webapp.directory_links import PROVIDER as DIRECTORY
from webapp.error_pages import error_page
from webapp.invitations import admit, check_admission, invitation_of, signup_is_open
from webapp.models import User
from webapp.providers import SignInProvider
from webapp.rate_limits import limited
from webapp.sign_in_forms import ADDRESS, name_fields
from webapp.signup import current_policy


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[Any]:
        """Those of the environment; allauth would look into a table as well."""
        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        both = (data.get("first_name"), data.get("last_name"))
        name = data.get("name") or " ".join(part for part in both if part)
        user.name = str(name or data.get("username") or "")[:120]
        return user

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        _check_subject(request, sociallogin)
        for address in sociallogin.email_addresses:
            address.verified = address.verified is True  # a string "false" is true to Python
        owner = _made_by_directory(request, sociallogin)
        if owner is not None:
            sociallogin.connect(request, owner)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        if not signup_is_open(request, is_vouched=True):
            return False
        _choose_address(request, sociallogin)
        return True

    def validate_disconnect(self, account: Any, accounts: Any) -> None:
        if account.provider == DIRECTORY and settings.DIRECTORY is not None:
            raise ValidationError(_("Only your administrator can part you from the directory."))

    def save_user(
        self, request: HttpRequest, sociallogin: Any, form: forms.BaseForm | None = None
    ) -> User:
        save = super().save_user
        return admit(request, lambda: save(request, sociallogin, form), is_vouched=True)


class SocialSignupForm(StockSignupForm):  # type: ignore[misc]
    """Asked of who comes from a provider that tells no address."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    field_order = ("name", "email")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_fields(self, email=ADDRESS)
        self.fields["name"].initial = self.sociallogin.user.name
        self.order_fields(self.field_order)

    def clean_email(self) -> str:
        email: str = super().clean_email()
        check_admission(context.request, email)
        return email


def _check_subject(request: HttpRequest, sociallogin: Any) -> None:
    """What an access token tells must be about who the ID token names (OpenID Connect Core 5.3.2)."""
    data = sociallogin.account.extra_data or {}
    told, named = data.get("userinfo"), data.get("id_token")
    if isinstance(told, dict) and isinstance(named, dict) and told.get("sub") != named.get("sub"):
        _refuse(request, _("The answer of the provider contradicts itself. Please try again."))


def _made_by_directory(request: HttpRequest, sociallogin: Any) -> User | None:
    """The account that this person's organisation has made for them, at their first sign-in.

    The only link by an address: for the provider that VITRINE_SCIM_PROVIDER names, whose word on it is
    as good as that of the directory which wrote it here. Never to an account that was here before the
    directory, that has a link to this provider already, or that has a right in the console.
    """
    is_asked = sociallogin.account.provider == settings.SCIM_PROVIDER
    if not is_asked or sociallogin.is_existing or request.user.is_authenticated:
        return None
    vouched = [one.email.lower() for one in sociallogin.email_addresses if one.verified]
    own = User.objects.filter(scim__is_made=True, is_active=True, email__in=vouched)
    own = own.exclude(is_staff=True).exclude(is_superuser=True)
    linked = SocialAccount.objects.filter(provider=settings.SCIM_PROVIDER)
    found = list(own.exclude(pk__in=linked.values("user_id"))[:2])
    return found[0] if len(found) == 1 else None  # two addresses of two accounts say nothing


def _choose_address(request: HttpRequest, sociallogin: Any) -> None:
    """Leave the one address that the account will have; refuse, in words, where there is none."""
    address = _best(request, sociallogin.email_addresses)
    title = sociallogin.account.get_provider(request).name
    if not settings.SMTP_HOST and not (address and address.verified):
        words = _(
            "%(provider)s does not vouch for your e-mail address, and this site cannot check it."
            " Ask your administrator for an account; then connect it with %(provider)s in the settings."
        )
        _refuse(request, words % {"provider": title})
    if address is None:
        return  # a form asks for it, and a letter confirms it
    try:
        check_admission(request, address.email)
    except ValidationError as error:
        _refuse(request, error.messages[0])
    # Only the owner of a mailbox is told that it has an account; allauth hides it from all others.
    if address.verified and User.objects.filter(email__iexact=address.email).exists():
        words = _(
            "There is an account with your address here already. Sign in to it, and connect it with"
            " %(provider)s in the settings."
        )
        _refuse(request, words % {"provider": title})
    address.primary = True
    sociallogin.email_addresses = [address]
    sociallogin.user.email = address.email.lower()


def _best(request: HttpRequest, addresses: list[EmailAddress]) -> EmailAddress | None:
    """One that may come in before others, one that is verified before others, the primary one."""
    invitation, policy = invitation_of(request), current_policy()

    def rank(address: EmailAddress) -> tuple[bool, bool, bool]:
        email = address.email.lower()
        is_meant = email == invitation.email if invitation else policy.admits(email)
        return bool(address.verified), is_meant, bool(address.primary)

    return max(addresses, key=rank, default=None)


def _refuse(request: HttpRequest, words: str) -> None:
    raise ImmediateHttpResponse(error_page(request, 403, words))


# --- addresses ------------------------------------------------------------------------------------


def login_url(provider: SignInProvider) -> str:
    arguments = [provider.id] if provider.kind == "openid_connect" else []
    return reverse(f"{provider.kind}_login", args=arguments)


def buttons() -> list[dict[str, str]]:
    """For the sign-in page."""
    return [
        {"id": one.id, "title": one.title, "url": login_url(one)}
        for one in settings.SIGN_IN_PROVIDERS
    ]


def _leaving(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponseBase]:
    """A page that leads to the provider, instead of a redirect: browsers count what a form leads to
    as its target, which our policy (form-action) keeps on this site."""

    def leave(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return redirect("account_login")
        response = view(request, *args, **kwargs)
        if not isinstance(response, HttpResponseRedirectBase):
            return response
        page = render(request, "socialaccount/leaving.html", {"address": response.url})
        page.cookies = response.cookies
        return page

    leave.login_required = False  # type: ignore[attr-defined]
    return never_cache(limited("provider")(leave))


class ConnectionsView(views.ConnectionsView):  # type: ignore[misc]
    extra_context = {"heading": gettext_lazy("Sign-in with others"), "here": "security"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        accounts = SocialAccount.objects.filter(user=self.request.user)
        connected = {account.provider: account for account in accounts}
        rows = [{**one, "account": connected.get(one["id"])} for one in buttons()]
        context: dict[str, Any] = super().get_context_data(**kwargs, providers=rows)
        return context


def urls_of(providers: tuple[SignInProvider, ...]) -> list[URLPattern]:
    """Doors under /accounts/ for the kinds of these providers, and none without any."""
    if not providers:
        return []
    registry.load()  # allauth's own list of addresses would, which is not used here
    patterns = [
        path("cancelled/", views.login_cancelled, name="socialaccount_login_cancelled"),
        path(
            "provider-error/",
            login_not_required(views.login_error),
            name="socialaccount_login_error",
        ),
        path("provider-signup/", limited("signup")(views.signup), name="socialaccount_signup"),
        path("connections/", ConnectionsView.as_view(), name="socialaccount_connections"),
    ]
    for kind in sorted({one.kind for one in providers}):
        patterns += _doors(kind)
    return patterns


def _doors(kind: str) -> list[URLPattern]:
    module = import_module(f"allauth.socialaccount.providers.{kind}.views")
    if kind == "openid_connect":
        start, login, callback = "oidc/<str:provider_id>/", module.login, module.callback
    else:
        start, login, callback = f"{kind}/", module.oauth2_login, module.oauth2_callback
    return [
        path(f"{start}login/", _leaving(login), name=f"{kind}_login"),
        path(f"{start}login/callback/", callback, name=f"{kind}_callback"),
    ]
