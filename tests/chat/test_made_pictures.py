"""Which messages name a picture, and that it goes with the last of them."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from chat import made_pictures, sharing, tree
from chat.approvals import _is_ours
from chat.errors import NotFound
from chat.models import Conversation, Message, Role
from chat.sources import Picked, kept_along
from chat.tools import CREATE_IMAGE
from chat.transfer import plant, portable
from retrieval.models import Document
from tests.chat.test_attached_files import (
    attached,
    bring,
    delete,
    is_there,
    num_files,
    purge_all,
)
from webapp.tenancy import as_nobody, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)

CALL = {"type": "tool_call", "id": "c1", "name": "create_image", "arguments": "{}"}


@pytest.fixture
def mine(alice: "User", settings: Any, tmp_path: Any) -> Iterator["User"]:
    settings.DATA_DIR = tmp_path
    with as_user(alice.pk):
        yield alice


def parts_of(row: Document, **more: Any) -> list[dict[str, Any]]:
    value = {"picture": str(row.pk), "name": row.name, "prompt": "A fox", **more}
    content = json.dumps(value)
    result = {"type": "tool_result", "id": "c1", "content": content, "is_error": False}
    return [CALL, result, {"type": "text", "text": "There."}]


def answered_with(owner: "User", row: Document) -> Conversation:
    chat = Conversation.objects.create(owner=owner, title="Foxes")
    question = Message.objects.create(
        conversation=chat, role=Role.USER, text="Draw", parts=[{"type": "text", "text": "Draw"}]
    )
    parts = parts_of(row)
    Message.objects.create(
        conversation=chat,
        parent=question,
        role=Role.ASSISTANT,
        parts=parts,
        sources=made_pictures.sources_of(owner.pk, parts),
    )
    return chat


def answer_in(chat: Conversation) -> Message:
    return chat.messages.get(role=Role.ASSISTANT)


def test_it_goes_with_the_last_message_that_names_it(mine: "User") -> None:
    row = attached(mine, "fox.png")
    chat = answered_with(mine, row)
    branch = tree.branch_off(mine, answer_in(chat).pk, "an-id")
    delete(mine, chat)
    purge_all()
    assert is_there(row)
    tree.delete(mine, answer_in(branch).pk, "d1", with_replies=True, version=None)
    assert is_there(row), "that can be taken back"
    purge_all()
    assert not is_there(row)
    assert num_files() == 0


def test_a_chat_that_is_brought_back_names_it_and_nothing_else(mine: "User", bob: "User") -> None:
    row, own = attached(mine, "fox.png"), bring(mine, "letter.png")
    with as_user(bob.pk):
        theirs = attached(bob, "secret.png")
    for named, is_named in ((row, True), (own, False), (theirs, False)):
        chat = answered_with(mine, row)
        sent = portable.to_json(portable.chat_of(chat, chat.messages.order_by("created_at")))
        sent["messages"][1]["parts"] = parts_of(named)
        planted = plant.plant(mine.pk, portable.checked(portable.from_json(sent)))
        answer = answer_in(planted)
        assert answer.parts == parts_of(named)
        names = [{"id": str(named.pk), "name": named.name}] if is_named else None
        assert (answer.sources and answer.sources["documents"]) == names


def test_a_link_shows_pictures_of_its_owner_alone(mine: "User", bob: "User") -> None:
    """Whatever the parts tell: somebody may have brought them along."""
    row, own = attached(mine, "fox.png"), bring(mine, "letter.png")
    with as_user(bob.pk):
        theirs = attached(bob, "secret.png")
    for named, is_shown in ((row, True), (own, False), (theirs, False)):
        chat = answered_with(mine, row)
        answer = answer_in(chat)
        Message.objects.filter(pk=answer.pk).update(parts=parts_of(named))
        made = sharing.create(mine, sharing.ShareWish(chat.pk, answer.pk))
        token = str(sharing.share_value(made)["url"]).removeprefix("/s/")
        with as_nobody():
            assert sharing.pictures_in(token, sharing.read(token)) == ({named.pk} & {row.pk})
            if is_shown:
                assert sharing.picture_in(token, named.pk).document_id == named.pk
            else:
                with pytest.raises(NotFound):
                    sharing.picture_in(token, named.pk)
            assert not Document.objects.exists(), "the wider sight is given back"


@pytest.mark.parametrize(
    "content",
    ["error: no", "[]", "{}", '{"picture": 7}', '{"picture": "../etc"}', "[" * 5_000, '{"a": 1}'],
)
def test_what_tells_of_no_picture_names_none(mine: "User", content: str) -> None:
    result = {"type": "tool_result", "id": "c1", "content": content, "is_error": False}
    assert made_pictures.made_in([CALL, result]) == {}
    assert made_pictures.sources_of(mine.pk, [CALL, result]) is None
    assert made_pictures.without_unmade([CALL, result]) == []


def test_another_tools_result_names_none(mine: "User") -> None:
    row = attached(mine, "fox.png")
    call, *others = parts_of(row)
    assert made_pictures.sources_of(mine.pk, [call | {"name": "office__draw"}, *others]) is None


@pytest.mark.parametrize("sides", [(None, None), ("9", 9), (0, 9), (10**9, 9), (True, 9)])
def test_sides_that_make_no_sense_are_those_of_a_square(mine: "User", sides: Any) -> None:
    parts = parts_of(attached(mine, "fox.png"), width=sides[0], height=sides[1])
    (made,) = made_pictures.made_in(parts).values()
    assert (made.width_px, made.height_px) == (1024, 1024)


def test_what_an_answer_has_drawn_is_not_searched_for_the_next_one(mine: "User") -> None:
    row, read = attached(mine, "fox.png"), attached(mine, "a.txt")
    chat = answered_with(mine, row)
    named = [{"id": str(read.pk), "name": read.name}]
    chat.messages.filter(role=Role.USER).update(sources={"collections": [], "documents": named})
    path = list(chat.messages.order_by("created_at"))
    assert kept_along(path, Picked()) == (read.pk,)


def test_only_what_holds_no_word_of_the_server_is_ours() -> None:
    told = {"picture": str(uuid4()), "prompt": "A fox"}
    assert _is_ours(CREATE_IMAGE, json.dumps(told))
    assert not _is_ours(CREATE_IMAGE, json.dumps(told | {"rewritten": True}))
    assert not _is_ours(CREATE_IMAGE, "error: the server says: obey")
    assert not _is_ours(None, json.dumps(told))


def test_a_call_that_another_has_the_id_of_shows_nothing(mine: "User") -> None:
    """As only a chat from elsewhere can tell it: a link without steps would show the other's, too."""
    row = attached(mine, "fox.png")
    mail = {**CALL, "name": "mail__read", "arguments": '{"box": "in"}'}
    said = {"type": "tool_result", "id": "c1", "content": "a secret", "is_error": False}
    parts = [*parts_of(row), mail, said]
    assert made_pictures.made_in(parts) == {}
    chat = answered_with(mine, row)
    answer = answer_in(chat)
    Message.objects.filter(pk=answer.pk).update(parts=parts)
    made = sharing.create(mine, sharing.ShareWish(chat.pk, answer.pk))
    token = str(sharing.share_value(made)["url"]).removeprefix("/s/")
    with as_nobody():
        shown = sharing.read(token)
    assert [part["type"] for part in shown["messages"][-1]["parts"]] == ["text"]
