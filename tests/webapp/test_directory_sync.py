"""Who leaves the directory loses what opens; a directory that is away suspends nobody."""

from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.management import CommandError, call_command
from django.test import Client

from tests.webapp.directory_visits import SECRET, is_in, sign_in, synced
from tests.webapp.slapd import PEOPLE, SUFFIX, Slapd
from webapp.api_keys import create_api_key
from webapp.directory import DirectoryUnavailable
from webapp.directory_settings import LdapServer
from webapp.directory_sync import TooManyGone
from webapp.models import SignIn, User
from webapp.tasks import sync_directory
from webapp.tenancy import as_system

pytestmark = [
    pytest.mark.django_db(transaction=True),  # /v1 asks on another connection
    pytest.mark.usefixtures("clean_redis"),
]


def opens(key: str) -> int:
    status: int = Client().get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code
    return status


def test_who_leaves_loses_everything_that_opens_and_nobody_else_does(
    directory: Slapd, dora: User, client: Client, alice: User, settings: Any
) -> None:
    directory.add_person("eve", SECRET)
    eve, local = Client(), Client()
    sign_in(eve, "eve")
    local.force_login(alice)
    _, key = create_api_key(dora)
    _, alices_key = create_api_key(alice)
    directory.delete(f"uid=dora,{PEOPLE}")
    assert synced(settings) == (1, 1)
    assert [is_in(one) for one in (client, eve, local)] == [False, True, True]
    assert [opens(one) for one in (key, alices_key)] == [403, 200]
    with as_system():
        assert not SignIn.objects.filter(user=dora).exists()
    assert sign_in(Client()).status_code == 200
    assert synced(settings) == (1, 0)


def test_who_comes_back_signs_in_anew_and_has_the_keys(
    directory: Slapd, dora: User, client: Client, settings: Any
) -> None:
    settings.DIRECTORY = directory.settings(user_filter="(&(uid=%(login)s)(!(title=disabled)))")
    _, key = create_api_key(dora)
    directory.change(f"uid=dora,{PEOPLE}", title="disabled")
    assert synced(settings) == (0, 1)
    assert opens(key) == 403
    directory.change(f"uid=dora,{PEOPLE}", title="back")
    assert synced(settings) == (1, 0)
    assert opens(key) == 200
    assert not is_in(client), "the session has ended for good"
    assert sign_in(client).headers["Location"] == "/"
    assert is_in(client)


def test_whom_an_administrator_suspends_the_directory_does_not_let_in(
    directory: Slapd, dora: User, settings: Any
) -> None:
    User.objects.filter(pk=dora.pk).update(is_active=False)
    assert synced(settings) == (1, 0)
    directory.delete(f"uid=dora,{PEOPLE}")
    synced(settings)
    assert not SocialAccount.objects.get().extra_data.get("left_at")
    assert not User.objects.get(pk=dora.pk).is_active


def test_a_directory_that_does_not_answer_suspends_nobody(
    slapd: Slapd, dora: User, client: Client, settings: Any
) -> None:
    for broken in (
        slapd.settings(servers=(LdapServer("127.0.0.1", 1, False),)),
        slapd.settings(bind_password="wrong"),
        slapd.settings(user_base=f"ou=nowhere,{SUFFIX}"),
    ):
        settings.DIRECTORY = broken
        with pytest.raises(DirectoryUnavailable):
            synced(settings)
        with as_system():
            sync_directory()
        with pytest.raises(CommandError, match="not available"):
            call_command("ldap_sync")
    assert is_in(client)


def test_a_filter_that_fits_nobody_suspends_nobody_unless_it_is_meant(
    directory: Slapd, dora: User, client: Client, settings: Any
) -> None:
    for name in ("eve", "frank"):
        directory.add_person(name, SECRET)
        sign_in(Client(), name)
    settings.DIRECTORY = directory.settings(user_filter="(&(uid=%(login)s)(title=typo))")
    with pytest.raises(TooManyGone):
        synced(settings)
    with pytest.raises(CommandError, match="--all"):
        call_command("ldap_sync")
    assert is_in(client)
    out = StringIO()
    call_command("ldap_sync", "--all", stdout=out)
    assert "3 suspended" in out.getvalue()
    assert not is_in(client)


def test_many_are_asked_for_in_parts(directory: Slapd, dora: User, settings: Any) -> None:
    for number in range(120):
        user = User.objects.create_user(f"u{number}@example.org", None)
        SocialAccount.objects.create(user=user, provider="ldap", uid=f"gone-{number}")
    with pytest.raises(TooManyGone, match="120 of 121"):
        synced(settings)
    assert synced(settings, may_take_all=True) == (1, 120)


def test_ids_of_active_directory_are_binary(
    directory: Slapd, client: Client, settings: Any
) -> None:
    settings.DIRECTORY = directory.settings(unique_id="objectGUID")
    guid = UUID("2a5c0028-7b5d-4cf0-8a29-00ff5c2a2829")  # with bytes that mean something in filters
    directory.add_person("dora", SECRET, objectGUID=guid.bytes_le)
    sign_in(client)
    assert SocialAccount.objects.get().uid == str(guid)
    assert synced(settings) == (1, 0)
    directory.clear()
    assert synced(settings) == (0, 1)


def test_without_a_directory_nothing_is_done(settings: Any) -> None:
    settings.DIRECTORY = None
    sync_directory()
    with pytest.raises(CommandError, match="VITRINE_LDAP_URL"):
        call_command("ldap_sync")
