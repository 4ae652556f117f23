"""What letters say: friendly, in the reader's language, and of Vitrine rather than of a host."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import allauth
import pytest
from allauth.account.adapter import get_adapter
from allauth.core import context as allauth_context
from django.conf import settings
from django.core import mail
from django.test import Client, RequestFactory
from django.utils import translation

from tests.conftest import PASSWORD
from tests.sites import wait_until
from webapp.mail_settings import sender
from webapp.models import Invitation, User

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
CODES = {"account/email/login_code", "account/email/password_reset_code"}  # links are sent instead
FACTS = {
    "timestamp": datetime(2026, 3, 5, 14, 30, tzinfo=UTC),
    "ip": "192.0.2.7",
    "user_agent": FIREFOX,
    "activate_url": "http://testserver/link",
    "password_reset_url": "http://testserver/link",
    "link": "http://testserver/link",
    "inviter": "Ada & Co",
    "expires_at": datetime(2026, 3, 19, tzinfo=UTC),
}
FOLDER = Path(settings.BASE_DIR) / "templates"
LETTERS = sorted(
    str(path.relative_to(FOLDER)).removesuffix("_message.txt")
    for path in FOLDER.rglob("email/*_message.txt")
    if path.name != "base_message.txt"
)


def sent_by_allauth() -> set[str]:
    """The letters that its source names."""
    sources = (path.read_text() for path in Path(allauth.__path__[0]).rglob("*.py"))
    named = {name for text in sources for name in re.findall(r'"(\w+/email/\w+)"', text)}
    return {name for name in named if not name.startswith("usersessions")}


def test_each_letter_is_ours() -> None:
    assert sent_by_allauth() - set(LETTERS) == CODES


@pytest.mark.parametrize("language", ["en", "de", "ar"])
@pytest.mark.parametrize("letter", LETTERS)
def test_a_letter_is_friendly_and_names_vitrine(
    letter: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr("webapp.accounts.send_soon", lambda message, **_: sent.append(message))
    request = RequestFactory().get("/")
    with translation.override(language), allauth_context.request_context(request):
        get_adapter(request).send_mail(letter, "dora@example.org", dict(FACTS))
    [message] = sent
    said = f"{message.subject}\n{message.body}"
    assert "!" not in said
    assert "Mozilla" not in said
    assert "&amp;" not in said
    assert "Vitrine · testserver" in message.body
    assert "testserver" not in message.subject
    if "192.0.2.7" in said:
        assert "Firefox" in said
        assert re.search(r"(14:30|2:30 p\.m\.) .*UTC", said)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("vitrine@example.org", "Vitrine <vitrine@example.org>"),
        ("Our chat <chat@example.org>", "Our chat <chat@example.org>"),
    ],
)
def test_letters_come_from_a_name(given: str, name: str) -> None:
    assert sender(given) == name


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_redis")
def test_an_invitation_names_who_invites(admin: User, settings: Any) -> None:
    settings.SMTP_HOST = "mail.example.org"
    client = Client()
    client.force_login(admin)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    form = {"email": "new@example.org", "tier": "free", "days": "14"}
    client.post("/admin/webapp/invitation/add/", form)
    assert Invitation.objects.get().email == "new@example.org"
    wait_until(lambda: mail.outbox, what="the letter")
    assert mail.outbox[0].subject == f"{admin} invites you to Vitrine"
    assert f"{admin} invites you to Vitrine" in mail.outbox[0].body
