"""Who may make an account, and what an invitation is good for."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from threading import Barrier
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import hashers
from django.contrib.auth.models import Group, Permission
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.conftest import PASSWORD
from tests.sites import wait_until
from webapp import invitations
from webapp.invitations import invite
from webapp.models import Invitation, ScimGroup, SignupRule, User
from webapp.signup_policy import SignupPolicy, signup_policy
from webapp.site_address import site_url

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]

SIGNUP = "/accounts/signup/"


def path_of(link: str) -> str:
    return "/accounts/" + link.split("/accounts/")[1]


def sign_up(client: Client, email: str = "dora@example.org", **more: Any) -> Any:
    return client.post(SIGNUP, {"name": "Dora", "email": email, "password1": PASSWORD, **more})


@pytest.fixture
def by_invitation(settings: Any, admin: User) -> None:
    settings.SIGNUP = SignupPolicy("invitation")


@pytest.fixture
def with_mail(settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ROOT_URLCONF = "tests.webapp.urls_with_mail"


@pytest.mark.parametrize(
    ("value", "policy"),
    [
        ("open", SignupPolicy("open")),
        ("invitation", SignupPolicy("invitation")),
        ("closed", SignupPolicy("closed")),
        ("domain:Example.org, b.co.uk", SignupPolicy("domain", ("example.org", "b.co.uk"))),
    ],
)
def test_the_policy_is_read(value: str, policy: SignupPolicy) -> None:
    assert signup_policy(value) == policy


@pytest.mark.parametrize(
    "value", ["", "all", "open:", "domain", "domain:", "domain:@example.org", "domain:org"]
)
def test_nonsense_names_the_variable(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="VITRINE_SIGNUP"):
        signup_policy(value)


def test_a_domain_means_itself_alone() -> None:
    policy = signup_policy("domain:example.org")
    assert policy.admits("a@Example.ORG")
    for email in ("a@sub.example.org", "a@example.org.evil.example", "a@example.com"):
        assert not policy.admits(email)


def test_without_an_invitation_there_is_no_account(by_invitation: None, client: Client) -> None:
    assert "by invitation" in client.get(SIGNUP).content.decode()
    assert sign_up(client).status_code == 200
    assert User.objects.count() == 1


def test_an_invitation_makes_one_account_of_its_tier(by_invitation: None, client: Client) -> None:
    _, link = invite(tier="pro")
    response = client.get(path_of(link))
    assert response.headers["Location"] == SIGNUP
    assert "plan Pro" in client.get(SIGNUP).content.decode()
    assert sign_up(client).status_code == 302
    dora = User.objects.get(email="dora@example.org")
    assert (dora.tier_id, dora.is_staff, dora.is_superuser) == ("pro", False, False)
    row = Invitation.objects.get()
    assert row.used_by == dora
    assert row.used_at is not None
    other = Client()
    assert other.get(path_of(link)).status_code == 404
    assert sign_up(other, "eve@example.org").status_code == 200
    assert not User.objects.filter(email="eve@example.org").exists()


def test_an_invitation_is_for_its_address(by_invitation: None, client: Client) -> None:
    _, link = invite(email="Dora@Example.org")
    client.get(path_of(link))
    assert 'value="dora@example.org"' in client.get(SIGNUP).content.decode()
    refused = sign_up(client, "eve@example.org")
    assert "another e-mail address" in refused.content.decode()
    assert User.objects.count() == 1
    assert sign_up(client).status_code == 302


@pytest.mark.parametrize("fate", ["expired", "used", "withdrawn"])
def test_an_invitation_that_ended_after_it_was_opened_lets_nobody_in(
    by_invitation: None, client: Client, fate: str
) -> None:
    row, link = invite()
    client.get(path_of(link))
    now = timezone.now()
    if fate == "expired":
        Invitation.objects.filter(pk=row.pk).update(expires_at=now - timedelta(seconds=1))
    elif fate == "used":
        Invitation.objects.filter(pk=row.pk).update(used_at=now)
    else:
        row.delete()
    assert sign_up(client).status_code == 200
    assert User.objects.count() == 1
    assert Client().get(path_of(link)).status_code == 404


def test_closed_is_closed_for_the_invited_too(
    by_invitation: None, client: Client, settings: Any
) -> None:
    _, link = invite()
    client.get(path_of(link))
    settings.SIGNUP = SignupPolicy("closed")
    assert sign_up(client).status_code == 200
    assert client.get(path_of(link)).status_code == 404
    assert User.objects.count() == 1


def test_guesses_open_nothing_and_the_token_is_not_kept(
    by_invitation: None, client: Client
) -> None:
    _, link = invite()
    token = link.rsplit("/", 1)[1]
    assert token not in str(Invitation.objects.values().get())
    for guess in (token[:-1], token + "a", "x" * 43, "%00"):
        assert client.get(f"/accounts/invitation/{guess}").status_code == 404


def test_only_addresses_of_the_domain_come_in_and_the_invited(
    admin: User, client: Client, settings: Any, with_mail: None
) -> None:
    settings.SIGNUP = signup_policy("domain:example.com")
    assert "@example.com" in sign_up(client).content.decode()
    assert not User.objects.filter(email="dora@example.org").exists()
    assert sign_up(client, "dora@example.com").status_code == 302
    guest = Client()
    guest.get(path_of(invite()[1]))
    assert sign_up(guest, "guest@example.org").status_code == 302
    assert User.objects.filter(email="guest@example.org").exists()


def test_where_nobody_can_confirm_an_address_a_domain_lets_nobody_in(
    admin: User, client: Client, settings: Any
) -> None:
    settings.SIGNUP = signup_policy("domain:example.com")
    assert sign_up(client, "dora@example.com").status_code == 200
    assert User.objects.count() == 1


def test_the_administrator_makes_invitations_and_sees_the_link_once(
    client: Client, admin: User
) -> None:
    client.force_login(admin)
    form = {
        "email": "new@example.org",
        "tier": "pro",
        "days": "3",
        "secret_hash": "f" * 64,
        "used_at": "2020-01-01",
    }
    add = "/admin/webapp/invitation/add/"
    page = client.post(add, form, follow=True, secure=True).content.decode()
    link = re.search(r"https://testserver/accounts/invitation/[\w-]+", page)
    assert link, "it leads to where the administrator is"
    assert link[0] not in client.get("/admin/webapp/invitation/").content.decode()
    row = Invitation.objects.get()
    assert (row.tier_id, row.used_at) == ("pro", None)
    assert timedelta(days=2) < row.expires_at - timezone.now() <= timedelta(days=3)
    assert row.secret_hash != "f" * 64
    assert client.get(f"/admin/webapp/invitation/{row.pk}/change/").status_code == 200
    assert client.post(f"/admin/webapp/invitation/{row.pk}/change/", form).status_code == 403
    assert Client().get(path_of(link[0])).status_code == 302


def test_others_make_none(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.post("/admin/webapp/invitation/add/", {}, follow=True).status_code == 403
    assert not Invitation.objects.exists()


def test_the_command_prints_a_link_that_works(admin: User, client: Client) -> None:
    out = StringIO()
    call_command("invite", "dora@example.org", "--tier", "enterprise", "--days", "2", stdout=out)
    link = out.getvalue().strip()
    assert link.startswith("http://127.0.0.1:8000/accounts/invitation/")
    assert client.get(path_of(link)).status_code == 302
    row = Invitation.objects.get()
    assert row.tier_id == "enterprise"
    assert timedelta(days=1) < row.expires_at - timezone.now() <= timedelta(days=2)


@pytest.mark.parametrize(
    ("of_site", "address"),
    [
        (
            {"HOST": "0.0.0.0", "SITE_NAMES": ["127.0.0.1", ".chat.example"]},
            "http://chat.example:8000",
        ),
        ({"HOST": "::", "SITE_NAMES": ["*", "localhost"]}, "http://localhost:8000"),
        ({"HOST": "192.0.2.7", "SITE_NAMES": ["chat.example"]}, "http://192.0.2.7:8000"),
        ({"HTTPS": True, "SITE_NAMES": ["localhost", "chat.example"]}, "https://chat.example"),
        ({"HTTPS": True, "SITE_NAMES": []}, "https://localhost"),
        ({"HTTPS": True, "HOST": "2001:db8::7", "SITE_NAMES": []}, "https://[2001:db8::7]"),
        ({"HTTPS": True, "HOST": "::", "SITE_NAMES": []}, "https://localhost"),
        ({"HOST": "0.0.0.0", "SITE_NAMES": []}, "http://localhost:8000"),
    ],
)
def test_links_lead_to_where_others_find_the_site(
    settings: Any, of_site: dict[str, Any], address: str
) -> None:
    for name, value in of_site.items():
        setattr(settings, name, value)
    assert site_url() == address


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "no e-mail"),
        (["--tier", "gold"], "no tier gold"),
        (["--days", "0"], "a day"),
        (["admin@example.org"], "already"),
    ],
)
def test_the_command_says_what_is_wrong(admin: User, arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("invite", *arguments)
    assert not Invitation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_thirty_with_one_invitation_one_gets_in(settings: Any, clean_redis: None) -> None:
    User.objects.create_superuser("admin@example.org", PASSWORD)
    settings.SIGNUP = SignupPolicy("invitation")
    _, link = invite()

    def come(n: int) -> None:
        try:
            client = Client(REMOTE_ADDR=f"198.51.100.{n}")
            client.get(path_of(link))
            sign_up(client, f"dora{n}@example.org")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(come, range(30)))
    assert User.objects.filter(is_superuser=False).count() == 1
    assert User.objects.filter(is_superuser=True).count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_of_console", [False, True])
def test_who_lost_an_invitation_does_not_get_in_by_an_address_that_nobody_proved(
    settings: Any, clean_redis: None, is_of_console: bool
) -> None:
    """Five have the form open before any of them sends it; no letter can confirm an address."""
    User.objects.create_superuser("admin@example.org", PASSWORD)
    if is_of_console:
        settings.SIGNUP = SignupPolicy("open")
        SignupRule.objects.create(mode="domain", domains=["example.org"])
    else:
        settings.SIGNUP = signup_policy("domain:example.org")
    _, link = invite(tier="pro")
    together = Barrier(5, timeout=60)  # half of the connections that there are
    locked = invitations._locked

    def wait_and_lock(request: Any) -> Any:
        together.wait()
        return locked(request)

    def come(n: int) -> None:
        try:
            client = Client(REMOTE_ADDR=f"198.51.100.{n}")
            client.get(path_of(link))
            sign_up(client, f"boss{n}@example.org")
        finally:
            connection.close()

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(5) as pool:
        patch.setattr(invitations, "_locked", wait_and_lock)
        list(pool.map(come, range(5)))
    (made,) = User.objects.filter(is_superuser=False)
    assert made.tier_id == "pro"


@pytest.mark.parametrize("path", [SIGNUP, "/settings/language", "/accounts/password/change/"])
def test_whatever_else_is_posted_changes_nothing_of_a_user(
    client: Client, admin: User, alice: User, path: str
) -> None:
    """Every field of the model, at the doors that write one."""
    wishes = {
        "is_staff": "on",
        "is_superuser": "on",
        "is_active": "",
        "tier": "admin",
        "tier_id": "admin",
        "id": "1",
        "pk": "1",
        "date_joined": "2001-01-01",
        "last_login": "2001-01-01",
        "groups": "1",
        "user_permissions": "1",
        "cost_per_month": "1000",
        "verified": "on",
        "email_verified": "on",
    }
    fields = {field.name for field in User._meta.get_fields() if field.concrete}
    assert fields <= wishes.keys() | {"password", "name", "email", "language"}, "the list is whole"
    form = {"language": "de", "oldpassword": PASSWORD} | {
        "password1": "a new horse 42",
        "password2": "a new horse 42",
        "name": "Dora",
        "email": "dora@example.org",
    }
    if path != SIGNUP:
        client.force_login(alice)
    alike = ("is_staff", "is_superuser", "is_active", "tier_id")
    client.post(path, form | wishes)
    made = User.objects.exclude(pk=admin.pk).order_by("-pk")[0]
    assert tuple(getattr(made, name) for name in alike) == (False, False, True, "free")
    assert made.date_joined.year > 2001
    assert made.cost_per_month is None
    assert not made.groups.exists()
    assert made.email == ("dora@example.org" if path == SIGNUP else "alice@example.org")


# --- what may not be told -------------------------------------------------------------------------


def neutral(page: Any, email: str) -> tuple[int, str, str]:
    text = page.content.decode().replace(email, "")
    words = re.sub(r'(value|nonce)="[^"]*"', "", text)
    return page.status_code, page.headers.get("Location", ""), words


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of the hasher for each time that it ran."""
    ran: list[str] = []
    hasher = hashers.get_hasher()
    encode = type(hasher).encode

    def counted(self: Any, *args: Any) -> str:
        ran.append(self.algorithm)
        return encode(self, *args)

    monkeypatch.setattr(type(hasher), "encode", counted)
    return ran


def test_a_sign_up_does_not_tell_who_has_an_account(
    admin: User, alice: User, with_mail: None, hashes: list[str]
) -> None:
    answers = []
    for email in (alice.email, "nobody@example.org"):
        hashes.clear()
        page = sign_up(Client(), email)
        answers.append((neutral(page, email), len(hashes)))
    assert answers[0] == answers[1]
    assert answers[0][0][0] == 302
    assert answers[0][1] == 1, "the slow part ran once for both"
    wait_until(lambda: len(mail.outbox) == 2, what="two letters")
    assert {letter.to[0] for letter in mail.outbox} == {alice.email, "nobody@example.org"}


def test_a_sign_in_does_not_tell_by_its_time(alice: User, hashes: list[str]) -> None:
    counts = []
    User.objects.filter(pk=alice.pk).update(is_active=True)
    for email in (alice.email, "nobody@example.org"):
        hashes.clear()
        Client().post("/accounts/login/", {"login": email, "password": "wrong"})
        counts.append(len(hashes))
    assert counts == [1, 1]


def test_a_reset_does_not_tell_who_has_an_account(
    alice: User, with_mail: None, hashes: list[str]
) -> None:
    answers = []
    for email in (alice.email, "nobody@example.org"):
        hashes.clear()
        page = Client().post("/accounts/password/reset/", {"email": email})
        answers.append((neutral(page, email), len(hashes)))
    assert answers[0] == answers[1]
    wait_until(lambda: len(mail.outbox) == 2, what="two letters")


# --- many at once ---------------------------------------------------------------------------------

ADD = "/admin/webapp/invitation/add/"
FIVE = [f"new{number}@example.org" for number in range(5)]


def paste(client: Client, text: str, **more: Any) -> Any:
    return client.post(ADD, {"email": text, "tier": "pro", "days": "3", **more})


@pytest.mark.django_db(transaction=True)
def test_an_invitation_speaks_the_language_of_who_invites(
    client: Client, admin: User, with_mail: None
) -> None:
    User.objects.filter(pk=admin.pk).update(language="de")
    client.force_login(admin)
    paste(client, FIVE[0])
    wait_until(lambda: len(mail.outbox) == 1, what="the letter")
    assert "Mit diesem Link" in mail.outbox[0].body


@pytest.mark.django_db(transaction=True)
def test_five_that_are_pasted_get_an_invitation_and_a_letter_each(
    client: Client, admin: User, with_mail: None
) -> None:
    group = Group.objects.create(name="Researchers")
    client.force_login(admin)
    text = f"{FIVE[0]}\r\n {FIVE[1].upper()} , {FIVE[2]};{FIVE[3]}\r\n\r\n{FIVE[4]}\r\n{FIVE[0]}"
    page = paste(client, text, group=group.pk)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    rows = Invitation.objects.order_by("email")
    assert [row.email for row in rows] == FIVE
    assert {(row.tier_id, row.group_id) for row in rows} == {("pro", group.pk)}
    wait_until(lambda: len(mail.outbox) == 5, what="five letters")
    assert sorted(letter.to[0] for letter in mail.outbox) == FIVE
    links = {}
    for letter in mail.outbox:
        found = re.search(r"http://\S+/accounts/invitation/[\w-]+", letter.body)
        assert found
        assert found[0] in page.content.decode()
        links[letter.to[0]] = found[0]
    assert len(set(links.values())) == 5
    guest = Client()
    guest.get(path_of(links[FIVE[2]]))
    assert sign_up(guest, FIVE[2]).status_code == 302
    assert list(User.objects.get(email=FIVE[2]).groups.all()) == [group]
    assert LogEntry.objects.count() == 5


def test_what_is_wrong_is_told_by_line_and_nothing_is_lost(
    client: Client, admin: User, alice: User
) -> None:
    client.force_login(admin)
    text = f"{FIVE[0]}\nnonsense\n{FIVE[1]}\nAlice@Example.org"
    page = paste(client, text).content.decode()
    assert "Line 2: nonsense is no e-mail address." in page
    assert "Line 4: alice@example.org has an account already." in page
    assert f"{FIVE[0]}\nnonsense\n{FIVE[1]}\nAlice@Example.org" in page
    assert not Invitation.objects.exists()


def test_without_mail_the_links_are_shown(client: Client, admin: User) -> None:
    client.force_login(admin)
    page = paste(client, "\n".join(FIVE)).content.decode()
    links = set(re.findall(r"http://\S+/accounts/invitation/[\w-]+", page))
    assert len(links) == 5
    assert all(Client().get(path_of(link)).status_code == 302 for link in links)
    assert not mail.outbox


def test_a_reset_does_not_wait_for_invitations(
    client: Client,
    admin: User,
    with_mail: None,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    ways: list[bool] = []
    monkeypatch.setattr(
        "webapp.accounts.send_soon", lambda message, *, is_one_of_many: ways.append(is_one_of_many)
    )
    client.force_login(admin)
    with django_capture_on_commit_callbacks(execute=True):
        paste(client, FIVE[0])
    Client().post("/accounts/password/reset/", {"email": admin.email})
    assert ways == [True, False]


def test_groups_are_for_superusers_to_give(client: Client, admin: User, alice: User) -> None:
    group = Group.objects.create(name="Researchers")
    alice.is_staff = True
    alice.save(update_fields=["is_staff"])
    alice.user_permissions.set(Permission.objects.filter(codename__endswith="_invitation"))
    client.force_login(alice)
    assert 'name="group"' not in client.get("/admin/webapp/invitation/add/").content.decode()
    paste(client, FIVE[0], group=group.pk)
    row = Invitation.objects.get()
    assert row.group is None, "however the form is sent"
    assert client.get(f"/admin/webapp/invitation/{row.pk}/change/").status_code == 200
    client.force_login(admin)
    assert 'name="group"' in client.get("/admin/webapp/invitation/add/").content.decode()


def test_a_group_that_scim_made_has_members_of_scim_s_alone(client: Client, admin: User) -> None:
    groups = [Group.objects.create(name=name) for name in ("Made there", "Found there", "Ours")]
    for group in groups[:2]:
        ScimGroup.objects.create(group=group, is_made=group.name == "Made there")
    client.force_login(admin)
    assert "valid choice" in paste(client, FIVE[0], group=groups[0].pk).content.decode()
    for group in groups[1:]:
        paste(client, FIVE[1], group=group.pk)
    given = set(Invitation.objects.values_list("group", flat=True))
    assert given == {group.pk for group in groups[1:]}


def test_a_group_that_gives_rights_is_not_given(client: Client, admin: User) -> None:
    group = Group.objects.create(name="Helpers")
    group.permissions.add(Permission.objects.get(codename="change_user"))
    client.force_login(admin)
    assert "valid choice" in paste(client, FIVE[0], group=group.pk).content.decode()
    assert not Invitation.objects.exists()
    _, link = invite()
    Invitation.objects.update(group=group)  # which had no permission when the letter was written
    guest = Client()
    guest.get(path_of(link))
    assert sign_up(guest).status_code == 302
    assert not User.objects.get(email="dora@example.org").groups.exists()


def test_where_sign_up_is_closed_no_letter_is_written(
    client: Client, admin: User, settings: Any
) -> None:
    settings.SIGNUP = SignupPolicy("closed")
    client.force_login(admin)
    assert "would open nothing" in paste(client, FIVE[0]).content.decode()
    assert not Invitation.objects.exists()
