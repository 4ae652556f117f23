"""Sign-in with a directory, a real OpenLDAP, by the form that everybody uses."""

import threading
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.db import connections
from django.test import Client

from tests.conftest import PASSWORD
from tests.webapp.directory_visits import LOGIN, SECRET, sign_in, who
from tests.webapp.slapd import PEOPLE, Slapd
from webapp.directory_sign_in import prove
from webapp.models import User
from webapp.security_events import events_of
from webapp.signup_policy import SignupPolicy
from webapp.tenancy import become_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.mark.parametrize("login", ["dora", "DORA", " dora ", "dora@example.org"])
def test_somebody_of_the_directory_gets_an_account_without_rights(
    directory: Slapd, client: Client, login: str
) -> None:
    directory.add_person("dora", SECRET, cn="Dora Dahl")
    assert sign_in(client, login).headers["Location"] == "/"
    dora = User.objects.get()
    assert who(client) == dora.email == "dora@example.org"
    assert (dora.name, dora.tier_id, dora.is_staff, dora.is_superuser) == (
        "Dora Dahl",
        "free",
        False,
        False,
    )
    assert not dora.has_usable_password()
    assert EmailAddress.objects.get(user=dora).verified
    assert sign_in(Client(), "dora").status_code == 302
    assert User.objects.count() == 1


def test_the_directory_admits_also_where_sign_up_is_closed(
    directory: Slapd, client: Client, settings: Any, admin: User
) -> None:
    settings.SIGNUP = SignupPolicy("closed")
    directory.add_person("dora", SECRET)
    sign_in(client, "dora")
    assert who(client) == "dora@example.org"


def test_the_page_asks_for_a_user_name_only_where_there_is_a_directory(
    directory: Slapd, client: Client, settings: Any
) -> None:
    assert "E-mail address or user name" in client.get(LOGIN).content.decode()
    settings.DIRECTORY = None
    page = client.get(LOGIN).content.decode()
    assert "user name" not in page
    assert 'type="email"' in page


# --- what opens nothing ---------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["", "wrong", SECRET.upper(), SECRET + "\0", "x" * 5000])
def test_another_password_opens_nothing(directory: Slapd, client: Client, password: str) -> None:
    directory.add_person("dora", SECRET)
    assert sign_in(client, "dora", password).status_code == 200
    assert prove("dora", password) is None
    assert who(client) == ""
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "login",
    [
        "*",
        "d*",
        "dora*",
        "dora)(uid=*",
        "*)(uid=*))(|(uid=*",
        "dora))%00",
        "dora\0",
        "\\64ora",
        "do\u00adra",
        "ｄora",
        "dora@example.org,",
        f"uid=dora,{PEOPLE}",
        "nobody",
        "d" * 100_000,
    ],
)
def test_no_login_is_a_filter(directory: Slapd, client: Client, login: str) -> None:
    directory.add_person("dora", SECRET)
    assert sign_in(client, login).status_code == 200
    assert prove(login, SECRET) is None
    assert who(client) == ""
    assert prove("dora", SECRET) is not None


def test_of_two_with_the_same_login_nobody_comes_in(directory: Slapd, client: Client) -> None:
    directory.add_person("dora", SECRET)
    directory.add_person("dora2", SECRET, mail="dora@example.org")
    assert sign_in(client, "dora@example.org").status_code == 200
    assert who(client) == ""
    assert sign_in(client, "dora").status_code == 302, "this login is of one alone"


def test_known_and_unknown_logins_get_the_same_answer(directory: Slapd, alice: User) -> None:
    directory.add_person("dora", SECRET)
    errors = set()
    for login in ("dora", "alice@example.org", "nobody", "nobody@example.org"):
        page = sign_in(Client(), login, "wrong")
        assert page.status_code == 200
        errors.add(str(page.context["form"].errors))
    assert len(errors) == 1


def test_who_is_not_there_is_asked_for_as_well(
    directory: Slapd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the time would tell: the directory hashes, and answers twice, for those alone who are."""
    from webapp import directory as asked

    binds: list[str] = []
    opens = asked._opens

    def counted(config: Any, dn: str, password: str) -> bool:
        binds.append(dn)
        return opens(config, dn, password)

    monkeypatch.setattr(asked, "_opens", counted)
    directory.add_person("dora", SECRET)
    assert prove("dora", "wrong") is None
    assert prove("nobody", "wrong") is None
    assert len(binds) == 2
    assert binds[0] == f"uid=dora,{PEOPLE}"
    assert binds[1].endswith(PEOPLE)


def test_guessing_ends_in_429(directory: Slapd, client: Client) -> None:
    directory.add_person("dora", SECRET)
    codes = [sign_in(client, "dora", "wrong").status_code for _ in range(11)]
    assert codes == [200] * 10 + [429]
    assert sign_in(client, "dora").status_code == 429


def test_who_matches_the_filter_no_more_comes_in_no_more(
    directory: Slapd, client: Client, settings: Any
) -> None:
    settings.DIRECTORY = directory.settings(user_filter="(&(uid=%(login)s)(!(title=disabled)))")
    dn = directory.add_person("dora", SECRET)
    assert sign_in(client, "dora").status_code == 302
    directory.change(dn, title="disabled")
    assert sign_in(Client(), "dora").status_code == 200
    directory.delete(dn)
    assert sign_in(Client(), "dora").status_code == 200


# --- one account for one entry --------------------------------------------------------------------


def test_an_account_belongs_to_the_entry_whatever_it_is_called(
    directory: Slapd, client: Client
) -> None:
    dn = directory.add_person("dora", SECRET)
    sign_in(Client(), "dora")
    directory.rename(dn, "uid=dahl")
    directory.change(f"uid=dahl,{PEOPLE}", mail="dahl@example.org", cn="Dora Dahl")
    sign_in(client, "dahl")
    dora = User.objects.get()
    assert (who(client), dora.name) == ("dahl@example.org", "Dora Dahl")
    assert [row.email for row in EmailAddress.objects.filter(user=dora)] == ["dahl@example.org"]


def test_another_entry_of_the_same_name_is_somebody_else(directory: Slapd, client: Client) -> None:
    directory.delete(directory.add_person("dora", SECRET))
    directory.add_person("dora", SECRET)
    sign_in(Client(), "dora")
    directory.clear()
    directory.add_person("dora", SECRET)
    assert "There is an account" in sign_in(client, "dora").content.decode()
    assert who(client) == ""


def test_an_account_of_the_same_address_is_not_taken_over(
    directory: Slapd, client: Client, alice: User
) -> None:
    directory.add_person("evil", SECRET, mail="Alice@Example.org")
    page = sign_in(client, "evil")
    assert "There is an account with your address" in page.content.decode()
    assert who(client) == ""
    assert not SocialAccount.objects.exists()
    assert sign_in(client, "alice@example.org", PASSWORD).status_code == 302


def test_another_address_from_there_is_on_the_trail_once(
    directory: Slapd, client: Client, alice: User
) -> None:
    dn = directory.add_person("dora", SECRET)
    sign_in(Client(), "dora")
    directory.change(dn, mail="Dora.Doe@Example.org")
    for _ in range(2):
        sign_in(client, "dora")
        client.logout()
    dora = User.objects.exclude(pk=alice.pk).get()
    assert dora.email == "dora.doe@example.org"
    changed = [row["how"] for row in events_of(dora.pk) if row["kind"] == "address"]
    assert changed == ["changed by LDAP"]


def test_an_address_that_becomes_anothers_is_not_taken_from_there(
    directory: Slapd, client: Client, alice: User
) -> None:
    dn = directory.add_person("dora", SECRET)
    sign_in(Client(), "dora")
    directory.change(dn, mail=alice.email)
    sign_in(client, "dora")
    assert who(client) == "dora@example.org"
    assert User.objects.get(pk=alice.pk).email == alice.email


@pytest.mark.parametrize("mail", [None, "dora", "d" * 300 + "@example.org"])
def test_without_an_address_there_is_no_account(
    directory: Slapd, client: Client, mail: str | None
) -> None:
    directory.add_person("dora", SECRET, mail=mail)
    assert "no e-mail address of yours" in sign_in(client, "dora").content.decode()
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_first_sign_ins_at_the_same_moment_make_one_account(directory: Slapd) -> None:
    directory.add_person("dora", SECRET)
    gate, codes = threading.Barrier(6), []

    def come() -> None:
        become_user(None)
        client = Client()
        try:
            gate.wait()
            codes.append(sign_in(client, "dora").status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=come) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [302] * 6
    assert (User.objects.count(), SocialAccount.objects.count()) == (1, 1)


def test_the_suspended_are_told_so(directory: Slapd, client: Client) -> None:
    directory.add_person("dora", SECRET)
    sign_in(Client(), "dora")
    User.objects.update(is_active=False)
    response = client.post(LOGIN, {"login": "dora", "password": SECRET}, follow=True)
    assert "suspended" in response.content.decode()
    assert who(client) == ""
    assert not User.objects.get().is_active, "an administrator has done it, and not the directory"


# --- beside the password --------------------------------------------------------------------------


def test_the_second_step_is_asked_for(directory: Slapd, client: Client) -> None:
    directory.add_person("dora", SECRET)
    sign_in(Client(), "dora")
    TOTP.activate(User.objects.get(), "A" * 32)
    assert Authenticator.objects.exists()
    assert sign_in(client, "dora").headers["Location"].startswith("/accounts/second-step/")
    assert who(client) == ""


def test_with_mail_the_directory_confirms_the_address(
    directory: Slapd, client: Client, settings: Any
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    directory.add_person("dora", SECRET)
    assert sign_in(client, "dora").headers["Location"] == "/"
    assert who(client) == "dora@example.org"


@pytest.mark.urls("tests.webapp.urls")
def test_a_program_gets_tokens_by_the_directory(directory: Slapd, client: Client) -> None:
    directory.add_person("dora", SECRET)

    def ask(**body: str) -> Any:
        return client.post("/api/auth/token", body, content_type="application/json")

    assert ask(email="dora", password=SECRET).status_code == 200
    assert ask(email="dora", password="wrong").status_code == 401
    directory.add_person("nameless", SECRET, mail=None)
    refused = ask(email="nameless", password=SECRET)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_account")


def test_the_password_is_kept_nowhere(directory: Slapd, client: Client) -> None:
    directory.add_person("dora", SECRET)
    sign_in(client, "dora")
    kept = [*User.objects.values_list(), *SocialAccount.objects.values_list()]
    assert SECRET not in str(kept)
    assert SECRET not in str(dict(client.session))
