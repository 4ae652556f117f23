"""A person's title wins over a found one, and over nobody else's without a word."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from chat import actions
from chat.errors import Conflict
from chat.models import Conversation
from chat.titles import clean
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User


@pytest.fixture
def conversation(alice: "User", db: None) -> Iterator[Conversation]:
    with as_user(alice.pk):
        yield Conversation.objects.create(owner=alice, title="The first words")


def test_a_title_found_while_one_is_typed_gives_way(
    alice: "User", conversation: Conversation
) -> None:
    seen = conversation.version
    assert actions.set_found_title(conversation.pk, "Found")
    actions.rename(alice, conversation.pk, "Typed", seen)
    assert not actions.set_found_title(conversation.pk, "Found later")
    conversation.refresh_from_db()
    assert conversation.title == "Typed"


def test_a_title_of_another_tab_is_not_overwritten(
    alice: "User", conversation: Conversation
) -> None:
    seen = conversation.version
    actions.rename(alice, conversation.pk, "From one tab", seen)
    with pytest.raises(Conflict):
        actions.rename(alice, conversation.pk, "From another", seen)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Greeting", "Greeting"),
        (' "A trip to Rome." ', "A trip to Rome"),
        ("Title: **Soup**", "Soup"),
        ("One\nTwo", ""),
        ("x" * 81, ""),
        ("...", ""),
    ],
)
def test_what_a_model_says_becomes_one_line(said: str, title: str) -> None:
    assert clean(said) == title
