"""What readers think, in the console: everybody's ratings, and nothing of their chats."""

import pytest
from django.test import Client

from chat.models import Conversation, Message, Role
from webapp.models import User
from webapp.tenancy import as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]
PAGE = "/admin/chat/ratedanswer/"


def rated(owner: User, rating: str, *reasons: str, comment: str = "") -> Message:
    feedback = {"rating": rating, "reasons": list(reasons), "comment": comment, "at": "2026-11-24"}
    with as_user(owner.pk):
        chat = Conversation.objects.create(owner=owner, title="secret title")
        return Message.objects.create(
            conversation=chat,
            role=Role.ASSISTANT,
            text="a canary in the answer",
            parts=[{"type": "text", "text": "a canary in the answer"}],
            model="vitrine-small",
            feedback=feedback if rating else None,
        )


def test_ratings_of_all_readers_are_listed_without_their_chats(
    console: Client, alice: User
) -> None:
    rated(alice, "bad", "too_long", comment="It went on and on")
    rated(alice, "good")
    rated(alice, "")
    page = console.get(PAGE).content.decode()
    for words in ("too long", "It went on and on", "vitrine-small", alice.email):
        assert words in page
    assert page.count(alice.email) == 2, "what is not rated is not listed"
    assert "canary" not in page
    assert "secret title" not in page


def test_filters_find_by_rating_and_reason(console: Client, alice: User) -> None:
    rated(alice, "bad", "too_long", comment="first")
    rated(alice, "bad", "sources", comment="second")
    rated(alice, "good", comment="third")
    for query, shown in {
        "rating=bad": {"first", "second"},
        "rating=good": {"third"},
        "reason=sources": {"second"},
        "rating=nonsense": {"first", "second", "third"},
        "q=second": {"second"},
    }.items():
        page = console.get(f"{PAGE}?{query}").content.decode()
        assert {word for word in ("first", "second", "third") if f">{word}<" in page} == shown, (
            query
        )


def test_nobody_changes_or_opens_one_there(console: Client, alice: User) -> None:
    row = rated(alice, "bad", comment="mine")
    for path in (f"{PAGE}add/", f"{PAGE}{row.pk}/delete/"):
        assert console.get(path).status_code == 403
    assert "canary" not in console.get(f"{PAGE}{row.pk}/change/").content.decode()


def test_a_user_does_not_see_the_page(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get(PAGE).status_code in (302, 403, 404)
