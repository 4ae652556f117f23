"""What is wrong with one account or entry stops neither the sync nor anybody else."""

from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.management import call_command
from django.test import Client

from tests.webapp.directory_visits import SECRET, is_in, sign_in, synced
from tests.webapp.slapd import PEOPLE, Slapd
from webapp import directory_sync
from webapp.directory import DirectoryUnavailable, prove
from webapp.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.fixture
def leaver(directory: Slapd) -> Client:
    """Of somebody who is signed in, and whose entry is gone."""
    directory.add_person("eve", SECRET)
    browser = Client()
    sign_in(browser, "eve")
    directory.delete(f"uid=eve,{PEOPLE}")
    return browser


def test_a_name_with_what_cannot_be_stored(
    dora: User, directory: Slapd, leaver: Client, settings: Any
) -> None:
    directory.change(f"uid=dora,{PEOPLE}", displayName="Do\0ra")
    settings.DIRECTORY = directory.settings(name="displayName")
    assert sign_in(Client()).status_code == 302
    assert User.objects.get(pk=dora.pk).name == "Do\ufffdra"
    assert synced(settings) == (1, 1)
    assert not is_in(leaver)


@pytest.mark.parametrize("typed", ["{C0FFEE}", "upper", "braces"])
def test_a_mistyped_id_is_left_alone(
    directory: Slapd, settings: Any, client: Client, alice: User, typed: str, caplog: Any
) -> None:
    settings.DIRECTORY = directory.settings(unique_id="objectGUID")
    alices = uuid4()
    for name, guid in (("dora", uuid4()), ("eve", uuid4()), ("alice", alices)):
        directory.add_person(name, SECRET, objectGUID=guid.bytes_le, cn=f"new {name}")
    uid = {"upper": str(alices).upper(), "braces": f"{{{alices}}}"}.get(typed, typed)
    SocialAccount.objects.create(user=alice, provider="ldap", uid=uid, extra_data={"dn": ""})
    eve = Client()
    sign_in(client)
    sign_in(eve, "eve")
    directory.delete(f"uid=eve,{PEOPLE}")
    assert synced(settings) == (1, 1)
    assert [is_in(one) for one in (client, eve)] == [True, False]
    now = User.objects.get(pk=alice.pk)
    assert (now.is_active, now.name, now.has_usable_password()) == (True, alice.name, True)
    assert f"user {alice.pk} is left alone" in caplog.text
    out = StringIO()
    call_command("ldap_sync", stdout=out)
    assert "1 could not be brought up to date" in out.getvalue()


@pytest.mark.parametrize("typed", ["x", "left_at", ["left_at"], None, 7])
def test_extra_data_that_is_no_object(
    dora: User, directory: Slapd, leaver: Client, settings: Any, typed: Any
) -> None:
    link = SocialAccount.objects.filter(user=dora)
    link.update(extra_data=typed if typed is not None else [])
    assert synced(settings) == (1, 1)
    assert link.get().extra_data == {"dn": f"uid=dora,{PEOPLE}"}
    link.update(extra_data="x")
    directory.delete(f"uid=dora,{PEOPLE}")
    assert synced(settings) == (0, 1)
    assert link.get().extra_data.keys() == {"left_at"}


def test_an_account_that_cannot_be_refreshed_keeps_none_of_the_others(
    dora: User,
    directory: Slapd,
    leaver: Client,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    directory.add_person("frank", SECRET)
    sign_in(Client(), "frank")
    for name in ("dora", "frank"):
        directory.change(f"uid={name},{PEOPLE}", cn="New")
    real = directory_sync.refresh

    def odd(link: Any, entry: Any, **more: Any) -> User:
        if link.user_id == dora.pk:
            raise RuntimeError("odd")
        return real(link, entry, **more)

    monkeypatch.setattr(directory_sync, "refresh", odd)
    assert synced(settings) == (2, 1)
    assert not is_in(leaver)
    assert User.objects.get(email="frank@example.org").name == "New"
    assert f"user {dora.pk} is not up to date" in caplog.text


@pytest.mark.parametrize("odd", [b"\xff\xfe", b"a\0b", b"x" * 192])
def test_an_id_that_is_no_text_is_nobodys(directory: Slapd, settings: Any, odd: bytes) -> None:
    """Made one, it would be the same for two people."""
    settings.DIRECTORY = directory.settings(unique_id="userSMIMECertificate")
    directory.add_person("dora", SECRET, userSMIMECertificate=odd)
    with pytest.raises(DirectoryUnavailable, match="userSMIMECertificate"):
        prove(settings.DIRECTORY, "dora", SECRET)
