"""Sign-in with an OpenID Connect server, and what its answers may not do."""

import html
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from tests.conftest import PASSWORD
from tests.sites import wait_until
from tests.webapp.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from webapp.invitations import invite
from webapp.models import ScimPerson, User
from webapp.providers import SignInProvider, allauth_settings, sign_in_providers
from webapp.security_events import events_of
from webapp.signup_policy import SignupPolicy, signup_policy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

START = "/accounts/oidc/work/login/"
DORA = {"sub": "d-1", "email": "dora@example.org", "email_verified": True, "name": "Dora"}


@pytest.fixture(scope="session")
def identity_provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture
def provider(
    identity_provider: IdentityProvider,
    settings: Any,
    admin: User,
    monkeypatch: pytest.MonkeyPatch,
) -> IdentityProvider:
    """Configured as VITRINE_OIDC_WORK_…, and visited by Dora."""
    known = SignInProvider(
        "work",
        "Work",
        "openid_connect",
        CLIENT_ID,
        CLIENT_SECRET,
        {"server_url": identity_provider.url},
    )
    kinds = {OpenIDConnectProvider.id: OpenIDConnectProvider}
    monkeypatch.setattr(registry, "provider_map", kinds)
    settings.SIGN_IN_PROVIDERS = (known,)
    settings.SOCIALACCOUNT_PROVIDERS = allauth_settings((known,))
    settings.ROOT_URLCONF = "tests.webapp.urls_with_provider"
    identity_provider.person, identity_provider.id_claims = dict(DORA), {}
    identity_provider.asked = []
    return identity_provider


@pytest.fixture
def with_mail(settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


def leave(client: Client, **form: str) -> str:
    """Press the button; the provider's address."""
    page = client.post(START, form)
    assert page.status_code == 200
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    assert found, page.content.decode()
    return html.unescape(found[1])


def come(client: Client, provider: IdentityProvider, **form: str) -> Any:
    """The whole way there and back."""
    return client.get(local(provider.authorize(leave(client, **form))))


def local(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def who(client: Client) -> str:
    """The address of who is signed in, or "" ."""
    page = client.get("/settings/security/")
    return page.context["user"].email if page.status_code == 200 else ""


def test_somebody_new_gets_an_account_of_the_free_tier(provider: IdentityProvider) -> None:
    provider.person |= {"is_superuser": True, "is_staff": True, "tier": "admin", "groups": ["x"]}
    client = Client()
    assert come(client, provider).headers["Location"] == "/"
    dora = User.objects.get(email="dora@example.org")
    assert (dora.name, dora.tier_id, dora.is_staff, dora.is_superuser) == (
        "Dora",
        "free",
        False,
        False,
    )
    assert not dora.has_usable_password()
    assert who(client) == dora.email
    assert EmailAddress.objects.get(user=dora).verified
    assert come(Client(), provider).status_code == 302
    assert User.objects.filter(email="dora@example.org").count() == 1


def test_pkce_state_and_the_exact_address_are_sent(provider: IdentityProvider) -> None:
    come(Client(), provider)
    asked = provider.asked[0]
    assert len(asked["code_challenge"]) == 43
    assert len(asked["state"]) >= 16
    assert asked["redirect_uri"] == "http://testserver/accounts/oidc/work/login/callback/"
    assert set(asked["scope"].split()) == {"openid", "profile", "email"}


def test_who_comes_again_is_known_by_the_subject_and_not_by_the_address(
    provider: IdentityProvider, alice: User
) -> None:
    come(Client(), provider)
    provider.person |= {"email": alice.email, "preferred_username": "alice"}
    client = Client()
    come(client, provider)
    assert who(client) == "dora@example.org"


@pytest.mark.parametrize("verified", [True, False, "false", "true", None])
def test_an_address_of_somebody_elses_opens_nothing(
    provider: IdentityProvider, alice: User, verified: Any
) -> None:
    provider.person |= {"sub": "evil", "email": alice.email, "email_verified": verified}
    client = Client()
    response = come(client, provider)
    assert response.status_code == 403
    assert who(client) == ""
    assert not SocialAccount.objects.exists()
    told = "There is an account" in response.content.decode()
    assert told is (verified is True), "only the owner of the mailbox is told"


def test_with_mail_the_owner_of_an_address_hears_of_it_and_the_visitor_does_not(
    provider: IdentityProvider, alice: User, with_mail: None, settings: Any
) -> None:
    settings.ROOT_URLCONF = "tests.webapp.urls_with_provider"
    answers = []
    for sub, email in (("evil", alice.email), ("new", "nobody@example.org")):
        provider.person = {"sub": sub, "email": email, "email_verified": False}
        client = Client()
        response = come(client, provider)
        answers.append((response.status_code, response.headers.get("Location")))
        assert who(client) == ""
    assert answers[0] == answers[1] == (302, "/accounts/confirm-email/")
    assert not SocialAccount.objects.filter(user=alice).exists()
    wait_until(lambda: len(mail.outbox) == 2, what="two letters")


def test_without_mail_an_address_that_nobody_vouches_for_makes_no_account(
    provider: IdentityProvider,
) -> None:
    for person in ({**DORA, "email_verified": False}, {"sub": "d-2"}):
        provider.person = person
        response = come(Client(), provider)
        assert response.status_code == 403
        assert "does not vouch" in response.content.decode()
    assert not User.objects.filter(is_superuser=False).exists()


@pytest.mark.parametrize(
    "change",
    [
        {"state": "wrong"},
        {"state": None},
        {"code": "wrong"},
        {"code": None},
        {"error": "server_error", "code": None},
    ],
)
def test_a_made_up_answer_opens_nothing(
    provider: IdentityProvider, change: dict[str, str | None]
) -> None:
    client = Client()
    back = urlsplit(provider.authorize(leave(client)))
    query = {name: values[0] for name, values in parse_qs(back.query).items()} | change
    response = client.get(back.path, {k: v for k, v in query.items() if v is not None})
    assert response.status_code == 401
    assert "begin again" in response.content.decode()
    assert who(client) == ""


def test_an_answer_works_once(provider: IdentityProvider) -> None:
    client = Client()
    back = local(provider.authorize(leave(client)))
    assert client.get(back).status_code == 302
    client.post("/accounts/logout/")
    assert client.get(back).status_code == 401
    assert who(client) == ""


def test_an_answer_is_for_the_browser_that_asked(provider: IdentityProvider, alice: User) -> None:
    """Or a link would sign a victim in as the attacker, or connect the attacker's account."""
    attacker, victim = Client(), Client()
    victim.force_login(alice)
    back = local(provider.authorize(leave(attacker)))
    assert victim.get(back).status_code == 401
    assert who(victim) == alice.email
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    "claims", [{"sub": "somebody else"}, {"aud": "another"}, {"iss": "https://evil"}, {"exp": 1}]
)
def test_an_id_token_that_is_not_for_us_opens_nothing(
    provider: IdentityProvider, claims: dict[str, Any]
) -> None:
    provider.id_claims = claims
    client = Client()
    assert come(client, provider).status_code in (401, 403)
    assert who(client) == ""
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:1"])
def test_nobody_is_sent_elsewhere_afterwards(provider: IdentityProvider, target: str) -> None:
    assert come(Client(), provider, next=target).headers["Location"] == "/"


def test_only_the_button_leads_away(provider: IdentityProvider, client: Client) -> None:
    assert client.get(START).headers["Location"] == "/accounts/login/"
    assert client.post("/accounts/oidc/unknown/login/").status_code == 404
    careful = Client(enforce_csrf_checks=True)
    assert careful.post(START).status_code == 403
    page = client.get("/accounts/login/").content.decode()
    assert "Sign in with Work" in page


# --- an address that nobody has confirmed ----------------------------------------------------------


ALICE = "alice@example.org"


@pytest.fixture
def hijacker(provider: IdentityProvider, with_mail: None) -> Client:
    """Has come with Alice's address before she did, and waits for her to confirm it."""
    provider.person = {"sub": "evil", "email": ALICE, "email_verified": False, "name": "Evil"}
    client = Client()
    assert come(client, provider).headers["Location"] == "/accounts/confirm-email/"
    assert who(client) == ""
    return client


def link_of_letter(path: str) -> str:
    def found() -> str:
        texts = [str(letter.body) for letter in mail.outbox if letter.to == [ALICE]]
        links = [match[0] for text in texts if (match := re.search(rf"{path}\S+", text))]
        return links[-1] if links else ""

    return str(wait_until(found, what="a letter"))


def confirm(client: Client) -> None:
    link = link_of_letter("/accounts/confirm-email/")
    assert client.get(link).status_code == 200
    client.post(link)
    assert EmailAddress.objects.get(email=ALICE).verified


def test_who_came_with_anothers_address_is_out_once_its_owner_resets_the_password(
    provider: IdentityProvider, hijacker: Client
) -> None:
    alice = Client()
    alice.post("/accounts/password/reset/", {"email": ALICE})
    form = alice.get(link_of_letter("/accounts/password/reset/key/"), follow=True)
    alice.post(form.request["PATH_INFO"], {"password1": PASSWORD, "password2": PASSWORD})
    assert not SocialAccount.objects.exists()
    trail = [(row["kind"], row["how"]) for row in events_of(User.objects.get(email=ALICE).pk)]
    assert ("connection", "parted from all: nobody had confirmed the address") in trail
    alice.post("/accounts/login/", {"login": ALICE, "password": PASSWORD})
    confirm(alice)
    alice.post("/accounts/login/", {"login": ALICE, "password": PASSWORD})
    assert who(alice) == ALICE
    for client in (hijacker, Client()):
        come(client, provider)
        assert who(client) == ""


def test_who_came_with_anothers_address_is_out_once_its_owner_confirms_it(
    provider: IdentityProvider, hijacker: Client
) -> None:
    alice = Client()
    confirm(alice)
    assert "begun in another browser" in alice.get("/accounts/login/").content.decode()
    for client in (hijacker, Client()):
        come(client, provider)
        assert who(client) == ""


def test_who_confirms_in_the_browser_of_the_sign_up_stays_connected(
    provider: IdentityProvider, hijacker: Client
) -> None:
    """And comes in by the provider from then on."""
    confirm(hijacker)
    assert who(hijacker) == "", "a link alone lets nobody in"
    for client in (hijacker, Client()):
        come(client, provider)
        assert who(client) == ALICE


def test_another_address_of_a_confirmed_account_parts_nobody(
    provider: IdentityProvider, with_mail: None
) -> None:
    come(Client(), provider)
    dora = User.objects.get(email="dora@example.org")
    EmailAddress.objects.create(user=dora, email=ALICE)
    client = Client()
    client.get(link := f"/accounts/confirm-email/{key_of(ALICE)}/")
    client.post(link)
    assert User.objects.get(pk=dora.pk).email == ALICE
    assert SocialAccount.objects.get().user == dora


def key_of(email: str) -> str:
    return str(EmailConfirmationHMAC.create(EmailAddress.objects.get(email=email)).key)


# --- the sign-up policy ---------------------------------------------------------------------------


def test_closed_is_closed(provider: IdentityProvider, settings: Any) -> None:
    settings.SIGNUP = SignupPolicy("closed")
    come(Client(), provider)
    assert not User.objects.filter(is_superuser=False).exists()


def test_before_the_administrator_nobody(provider: IdentityProvider, admin: User) -> None:
    admin.delete()
    come(Client(), provider)
    assert not User.objects.exists()


def test_an_invitation_lets_in_and_gives_its_tier(
    provider: IdentityProvider, settings: Any
) -> None:
    settings.SIGNUP = SignupPolicy("invitation")
    come(Client(), provider)
    assert not User.objects.filter(is_superuser=False).exists()
    link = invite(tier="pro", email="dora@example.org")[1]
    guest = Client()
    guest.get(urlsplit(link).path)
    come(guest, provider)
    assert User.objects.get(email="dora@example.org").tier_id == "pro"
    assert Client().get(urlsplit(link).path).status_code == 404


def test_an_invitation_is_for_its_address(provider: IdentityProvider, settings: Any) -> None:
    settings.SIGNUP = SignupPolicy("invitation")
    guest = Client()
    guest.get(urlsplit(invite(email="other@example.org")[1]).path)
    assert come(guest, provider).status_code == 403
    assert not User.objects.filter(is_superuser=False).exists()


def test_a_domain_is_believed_of_a_provider_that_vouches(
    provider: IdentityProvider, settings: Any
) -> None:
    settings.SIGNUP = signup_policy("domain:example.com")
    assert "@example.com" in come(Client(), provider).content.decode()
    provider.person |= {"sub": "d-3", "email": "dora@example.com"}
    client = Client()
    come(client, provider)
    assert who(client) == "dora@example.com"


# --- connecting -----------------------------------------------------------------------------------


def test_who_is_signed_in_connects_after_a_proof_and_may_disconnect(
    provider: IdentityProvider, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    response = come(client, provider, process="connect")
    assert response.headers["Location"].startswith("/accounts/reauthenticate/")
    assert not SocialAccount.objects.exists(), "a stolen session connects nothing"
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    row = SocialAccount.objects.get()
    assert (row.user, row.provider, row.uid) == (alice, "work", "d-1")
    elsewhere = Client()
    come(elsewhere, provider)
    assert who(elsewhere) == alice.email
    assert "Disconnect" in client.get("/accounts/connections/").content.decode()
    client.post("/accounts/connections/", {"account": row.pk})
    assert not SocialAccount.objects.exists()


def test_the_last_way_in_cannot_be_taken_away(provider: IdentityProvider) -> None:
    client = Client()
    come(client, provider)
    row = SocialAccount.objects.get()
    client.post("/accounts/connections/", {"account": row.pk})
    assert SocialAccount.objects.exists()


def test_an_account_that_is_anothers_is_not_connected(
    provider: IdentityProvider, alice: User
) -> None:
    come(Client(), provider)
    client = Client()
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    come(client, provider, process="connect")
    assert SocialAccount.objects.get().user.email == "dora@example.org"
    stranger = Client()
    stranger.force_login(alice)
    stranger.post("/accounts/connections/", {"account": SocialAccount.objects.get().pk})
    assert SocialAccount.objects.exists()


# --- configuration --------------------------------------------------------------------------------


def configured(monkeypatch: pytest.MonkeyPatch, **variables: str) -> list[tuple[str, str, str]]:
    for name, value in variables.items():
        monkeypatch.setenv(f"VITRINE_{name}", value)
    return [(one.id, one.title, one.kind) for one in sign_in_providers()]


def test_none_is_there_without_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(monkeypatch) == []


def test_providers_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "secret").write_text("s\n")
    found = configured(
        monkeypatch,
        GOOGLE_CLIENT_ID="g",
        GOOGLE_CLIENT_SECRET="s",
        GITHUB_CLIENT_ID="h",
        GITHUB_CLIENT_SECRET_FILE=str(tmp_path / "secret"),
        MICROSOFT_CLIENT_ID="m",
        MICROSOFT_CLIENT_SECRET="s",
        OIDC_BIG_CORP_URL="https://login.example.org/realms/big/",
        OIDC_BIG_CORP_CLIENT_ID="b",
        OIDC_BIG_CORP_CLIENT_SECRET="s",
        OIDC_WORK_URL="https://login.example.com",
        OIDC_WORK_CLIENT_ID="w",
        OIDC_WORK_CLIENT_SECRET="s",
        OIDC_WORK_TITLE="The office",
    )
    assert found == [
        ("google", "Google", "openid_connect"),
        ("github", "GitHub", "github"),
        ("microsoft", "Microsoft", "microsoft"),
        ("big-corp", "Big Corp", "openid_connect"),
        ("work", "The office", "openid_connect"),
    ]
    providers = sign_in_providers()
    assert providers[1].client_secret == "s"
    assert "client_secret" not in repr(providers)
    assert providers[2].options == {"tenant": "common", "verified_email": False}
    made = allauth_settings(providers)
    assert all(kind["OAUTH_PKCE_ENABLED"] for kind in made.values())


@pytest.mark.parametrize(
    "variables",
    [
        {"GOOGLE_CLIENT_ID": "g"},
        {"GITHUB_CLIENT_SECRET": "s"},
        {"OIDC_WORK_URL": "https://login.example.org"},
        {"OIDC_WORK_URL": "http://login.example.org", "OIDC_WORK_CLIENT_ID": "w"},
        {"OIDC_WORK_CLIENT_ID": "w", "OIDC_WORK_CLIENT_SECRET": "s"},
        {"OIDC_WORK_SECRET": "s"},
        {"OIDC_GOOGLE_URL": "https://login.example.org"},
        {"MICROSOFT_TENANT": "a/b"},
    ],
)
def test_half_of_one_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    with pytest.raises(ImproperlyConfigured, match="VITRINE_"):
        configured(monkeypatch, **variables)


# --- accounts of the organisation's directory -----------------------------------------------------


@pytest.fixture
def dora(provider: IdentityProvider, settings: Any) -> User:
    """Has an account that the directory made, and has never been here."""
    settings.SCIM_PROVIDER = "work"
    user = User.objects.create_user("dora@example.org", None, name="Dora")
    ScimPerson.objects.create(user=user, user_name="dora", is_made=True)
    return user


def test_who_has_an_account_of_the_directorys_comes_in_by_its_provider(
    provider: IdentityProvider, dora: User, settings: Any
) -> None:
    settings.SIGNUP = SignupPolicy("closed")
    client = Client()
    come(client, provider)
    assert who(client) == dora.email
    assert SocialAccount.objects.get().user == dora
    provider.person |= {"email": "other@example.org"}
    again = Client()
    come(again, provider)
    assert who(again) == dora.email, "from then on it is the subject that counts"


@pytest.mark.parametrize("verified", [False, "true", None])
def test_an_address_that_the_provider_does_not_vouch_for_opens_no_account_of_the_directorys(
    provider: IdentityProvider, dora: User, verified: Any
) -> None:
    provider.person |= {"email_verified": verified}
    client = Client()
    assert come(client, provider).status_code == 403
    assert who(client) == ""
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"is_superuser": True},
        {"is_staff": True},
        {"is_active": False},
        {"email": "elsewhere@example.org"},
        {"scim": {"is_made": False}},
        {"scim": None},
        {"provider": ""},
        {"provider": "other"},
        {"linked": True},
    ],
    ids=str,
)
def test_no_other_account_is_opened_by_its_address(
    provider: IdentityProvider, dora: User, settings: Any, change: dict[str, Any]
) -> None:
    settings.SCIM_PROVIDER = change.pop("provider", "work")
    if change.pop("linked", False):
        SocialAccount.objects.create(user=dora, provider="work", uid="somebody-else")
    rows = ScimPerson.objects.filter(user=dora)
    if "scim" in change:
        rows.update(**made) if (made := change.pop("scim")) else rows.delete()
    User.objects.filter(pk=dora.pk).update(**change)
    client = Client()
    come(client, provider)
    assert not SocialAccount.objects.filter(user=dora, uid="d-1").exists()
    assert who(client) in ("", "dora@example.org" if "email" in change else "")
    if who(client):
        assert User.objects.get(email="dora@example.org").pk != dora.pk
