"""A person's title wins over a found one, and over nobody else's without a word."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from chat import actions, history, library, titles
from chat.errors import Conflict
from chat.models import Conversation, Generation, Message, MessageStatus, Role
from chat.titles import clean
from chat.tools import BUILT_IN
from inference import BUILTIN, ChatTokenizer
from inference.builtin import MODEL_DIR
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
    library.change(alice, conversation.pk, {"title": "Typed"}, seen)
    assert not actions.set_found_title(conversation.pk, "Found later")
    conversation.refresh_from_db()
    assert conversation.title == "Typed"


def test_a_title_of_another_tab_is_not_overwritten(
    alice: "User", conversation: Conversation
) -> None:
    seen = conversation.version
    library.change(alice, conversation.pk, {"title": "From one tab"}, seen)
    with pytest.raises(Conflict):
        library.change(alice, conversation.pk, {"title": "From another"}, seen)


def test_the_prompt_begins_as_the_chat_did(alice: "User", conversation: Conversation) -> None:
    """Or the engine would read it all again."""
    question = Message.objects.create(
        conversation=conversation,
        role=Role.USER,
        status=MessageStatus.COMPLETE,
        text="What is 2 + 2?",
    )
    parts = [
        {
            "type": "tool_call",
            "id": "1",
            "name": "calculator",
            "arguments": '{"expression": "2 + 2"}',
        },
        {"type": "tool_result", "id": "1", "content": "4"},
        {"type": "text", "text": "2 + 2 is 4."},
    ]
    reply = Message.objects.create(
        conversation=conversation,
        parent=question,
        role=Role.ASSISTANT,
        status=MessageStatus.COMPLETE,
        text="2 + 2 is 4.",
        parts=parts,
        model=BUILTIN,
    )
    names = list(BUILT_IN)
    params = {"tools": names, "weight": 2.0, "api_key": 7, "api_key_prefix": "vt_abc"}
    Generation.objects.create(conversation=conversation, message=reply, params=params)
    request = titles._request(conversation.pk)
    assert request is not None
    assert (request.user, request.weight) == (str(alice.pk), 2.0)
    assert request.api_key == (7, "vt_abc"), "policies are chosen by it"
    assert request.asked == ("What is 2 + 2?",), "the answer was judged when it was given"
    tokenizer = ChatTokenizer.load(MODEL_DIR)
    tools = [BUILT_IN[name].schema() for name in names]
    asked = tokenizer.encode_chat(history.as_chat(conversation, question.pk), tools=tools)
    answered = tokenizer.encode_chat(history.as_chat(conversation, reply.pk), tools=tools)
    prompt = tokenizer.encode_chat(request.messages, tools=request.tool_schemas)
    assert prompt[: len(asked)] == asked
    end = len(tokenizer.encode("assistant\n")) + 1  # the mark that opens the next answer
    assert prompt[: len(answered) - end] == answered[:-end]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Greeting", "Greeting"),
        (' "A trip to Rome." ', "A trip to Rome"),
        ("Title: **Soup**", "Soup"),
        ("volleyball in Ottawa", "Volleyball in Ottawa"),
        ("'ärger mit dem Drucker'", "Ärger mit dem Drucker"),
        ("iPhone or not", "iPhone or not"),
        ("6 * 9", "6 * 9"),
        ("One\nTwo", ""),
        ("x" * 81, ""),
        ("...", ""),
    ],
)
def test_what_a_model_says_becomes_one_line(said: str, title: str) -> None:
    assert clean(said) == title
