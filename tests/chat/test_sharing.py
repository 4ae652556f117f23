"""Share links: a stranger sees exactly what the link shows, by whatever way, and nothing after it."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from chat import sharing, tree
from chat.models import Conversation, Message, Share
from webapp.tenancy import as_nobody, as_user

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = [
    {"type": "reasoning", "text": "secret thought"},
    {"type": "tool_call", "id": "1", "name": "calculator", "arguments": "secret arguments"},
    {"type": "tool_result", "id": "1", "content": "secret result", "is_error": False},
    {"type": "file", "name": "secret file"},
]


def say(chat: Conversation, role: str, text: str, parent: Message | None, **fields: Any) -> Message:
    parts = [*fields.pop("parts", []), {"type": "text", "text": text, "hidden": "secret key"}]
    return Message.objects.create(
        conversation=chat, parent=parent, role=role, text=text, parts=parts, **fields
    )


@pytest.fixture
def chat(alice: "User") -> Conversation:
    """question → answer (with steps) → question 2 → answer 2; and another branch beside them."""
    with as_user(alice.pk):
        chat = Conversation.objects.create(
            owner=alice, title="A title", system_prompt="secret prompt", model="m"
        )
        question = say(chat, "user", "question", None)
        answer = say(chat, "assistant", "answer", question, parts=list(STEPS), model="m")
        again = say(chat, "user", "question 2", answer)
        say(chat, "assistant", "answer 2", again, model="m")
        say(chat, "assistant", "secret branch", question)
    return chat


def answers(chat: Conversation, text: str) -> Message:
    return Message.objects.get(conversation=chat, text=text)


def share(owner: "User", chat: Conversation, text: str = "answer", **wish: Any) -> str:
    """The token of a new link."""
    with as_user(owner.pk):
        message = answers(chat, text)
        made = sharing.create(owner, sharing.ShareWish(chat.pk, message.pk, **wish))
        url = sharing.share_value(made)["url"]
    return str(url).removeprefix("/s/")


def texts(token: str) -> list[str]:
    return [message["text"] for message in sharing.read(token)["messages"]]


def is_gone(token: str) -> bool:
    try:
        sharing.read(token)
    except sharing.NotFound:
        return True
    return False


def test_a_snapshot_ends_where_it_was_made(alice: "User", chat: Conversation) -> None:
    token = share(alice, chat)
    with as_user(alice.pk):
        say(chat, "user", "later", answers(chat, "answer"))
        Conversation.objects.filter(pk=chat.pk).update(title="Another title")
    with as_nobody():
        shown = sharing.read(token)
        assert texts(token) == ["question", "answer"]
    assert (shown["title"], shown["shown_name"]) == ("A title", "")
    assert "secret" not in str(shown)


def test_a_live_link_follows_its_branch_and_no_other(alice: "User", chat: Conversation) -> None:
    token = share(alice, chat, kind="live")
    assert texts(token) == ["question", "answer", "question 2", "answer 2"]
    with as_user(alice.pk):
        later = say(chat, "user", "later", answers(chat, "answer 2"))
        say(chat, "assistant", "", later, status="running")
        say(chat, "assistant", "elsewhere", answers(chat, "secret branch"))
    assert texts(token) == ["question", "answer", "question 2", "answer 2", "later"]


def test_steps_are_shown_only_if_they_were_chosen(alice: "User", chat: Conversation) -> None:
    parts = sharing.read(share(alice, chat, with_steps=True))["messages"][1]["parts"]
    assert [part["type"] for part in parts] == ["reasoning", "tool_call", "tool_result", "text"]
    parts = sharing.read(share(alice, chat))["messages"][1]["parts"]
    assert parts == [{"type": "text", "text": "answer"}]


def test_pictures_are_shown_without_the_other_steps(alice: "User", chat: Conversation) -> None:
    call = {"type": "tool_call", "id": "2", "name": "create_image", "arguments": "{}"}
    made = json.dumps({"picture": str(uuid4()), "name": "a.png", "prompt": "A fox"})
    result = {"type": "tool_result", "id": "2", "content": made, "is_error": False}
    failed = [call | {"id": "3"}, result | {"id": "3", "content": "error: secret"}]
    with as_user(alice.pk):
        message = answers(chat, "answer")
        hidden = {"hidden": "secret key"}
        message.parts = [*STEPS, call | hidden, result | hidden, *failed, *message.parts[-1:]]
        message.save()
    shown = sharing.read(share(alice, chat))
    assert shown["messages"][1]["parts"] == [call, result, {"type": "text", "text": "answer"}]
    assert "secret" not in str(shown)
    whole = sharing.read(share(alice, chat, with_steps=True))["messages"][1]["parts"]
    assert [part["type"] for part in whole] == [
        "reasoning", *(["tool_call", "tool_result"] * 3), "text",
    ]  # fmt: skip


def test_the_owners_name_is_shown_only_if_chosen(alice: "User", chat: Conversation) -> None:
    assert sharing.read(share(alice, chat, with_name=True))["shown_name"] == "Alice"


def test_unknown_revoked_and_expired_links_are_one_404(
    alice: "User", bob: "User", chat: Conversation, clean_redis: None
) -> None:
    revoked, expired, deleted = (
        share(alice, chat),
        share(alice, chat),
        share(alice, chat, "answer 2"),
    )
    with as_user(alice.pk):
        newest_first = list(sharing.shares_of(alice))
        sharing.revoke(alice, newest_first[2].pk)
        past = timezone.now() - timedelta(seconds=1)
        Share.objects.filter(pk=newest_first[1].pk).update(expires_at=past)
        answers(chat, "answer 2").delete()
        assert list(sharing.shares_of(alice)) == []
    client = Client()
    client.force_login(bob)
    pages = [client.get(f"/s/{token}") for token in (revoked, expired, deleted, "unknown", "é\x00")]
    assert {page.status_code for page in pages} == {404}
    assert len({page.content for page in pages}) == 1
    for token in (revoked, expired, deleted, "unknown"):
        assert is_gone(token)
        assert client.post(f"/s/{token}/continue").status_code == 404


def test_a_link_ends_with_its_chat(alice: "User", chat: Conversation) -> None:
    token = share(alice, chat)
    with as_user(alice.pk):
        chat.delete()
    assert is_gone(token)


@pytest.mark.parametrize("kind", ["snapshot", "live"])
@pytest.mark.parametrize("with_replies", [True, False])
def test_a_link_ends_with_its_answer_and_comes_back_with_it(
    alice: "User", chat: Conversation, kind: str, with_replies: bool
) -> None:
    token = share(alice, chat, kind=kind)
    with as_user(alice.pk):
        answer = answers(chat, "answer")
        before = texts(token)
        tree.delete(alice, answer.pk, "d", with_replies=with_replies, version=None)
        assert is_gone(token)
        assert list(sharing.shares_of(alice)) == []
        tree.restore(alice, chat.pk, "d")
        assert texts(token) == before
        assert len(sharing.shares_of(alice)) == 1


def test_the_page_is_private_and_safe(
    alice: "User", bob: "User", chat: Conversation, clean_redis: None
) -> None:
    with as_user(alice.pk):
        evil = "<script>evil()</script>"
        Message.objects.filter(text="answer").update(parts=[{"type": "text", "text": evil}])
    token = share(alice, chat)
    client = Client()
    client.force_login(bob)
    page = client.get(f"/s/{token}")
    assert page.status_code == 200
    body = page.content.decode()
    assert "&lt;script&gt;evil()" in body
    assert evil not in body
    assert "Alice" not in body
    assert "alice@" not in body
    assert "noindex" in page["X-Robots-Tag"]
    assert '<meta name="robots" content="noindex' in body
    assert page["Referrer-Policy"] == "same-origin", "the address is the key"
    assert "no-store" in page["Cache-Control"]
    assert "script-src 'self' 'nonce-" in page["Content-Security-Policy"]
    assert str(chat.pk) not in body


def test_without_a_sign_in_only_if_the_operator_allows(alice: "User", chat: Conversation) -> None:
    token = share(alice, chat)
    nobody = Client()
    for address in (f"/s/{token}", "/s/unknown"):
        page = nobody.get(address)
        assert page.status_code == 302, "known and unknown tokens look alike"
        assert page["Location"].startswith("/accounts/login/?next=/s/")
    with override_settings(PUBLIC_SHARES=True):
        page = nobody.get(f"/s/{token}")
        assert page.status_code == 200
        assert "Continue from here" not in page.content.decode()
        assert nobody.get("/s/unknown").status_code == 404
        assert nobody.post(f"/s/{token}/continue").status_code == 302


def test_continue_copies_the_branch_and_nothing_else(
    alice: "User", bob: "User", chat: Conversation, clean_redis: None
) -> None:
    token = share(alice, chat, "answer 2")
    client = Client()
    client.force_login(bob)
    response = client.post(f"/s/{token}/continue", {"up_to": "3"})
    copy_id = UUID(response["Location"].removeprefix("/c/"))
    with as_user(bob.pk):
        copy = Conversation.objects.get(pk=copy_id)
        rows = list(Message.objects.filter(conversation=copy).order_by("created_at", "id"))
    assert [row.text for row in rows] == ["question", "answer"], "it ends with an answer"
    assert [row.parent_id for row in rows] == [None, rows[0].pk]
    assert (copy.title, copy.system_prompt, copy.owner_id) == ("A title", "", bob.pk)
    with as_user(alice.pk):
        assert Conversation.objects.count() == 1


def test_charlie_at_every_door(
    alice: "User", charlie: "User", chat: Conversation, clean_redis: None
) -> None:
    share(alice, chat)
    with as_user(alice.pk):
        row = sharing.shares_of(alice)[0]
        answer = answers(chat, "answer")
    client = Client()
    client.force_login(charlie)
    assert client.get("/api/shares").json() == {"items": [], "next": None}
    assert client.get(f"/api/shares?conversation={chat.pk}").status_code == 404
    assert (
        client.delete(f"/api/shares/{row.pk}").json()
        == client.delete(f"/api/shares/{uuid4()}").json()
    )
    body = {"conversation": str(chat.pk), "message": str(answer.pk)}
    assert client.post("/api/shares", body, content_type="application/json").status_code == 404
    assert client.delete("/api/shares").json() == {"revoked": 0}
    assert client.get(f"/s/{row.pk}").status_code == 404, "the id is no key"
    assert client.get(f"/s/{row.token_hash}").status_code == 404, "nor is what is stored"
    with as_user(alice.pk):
        assert sharing.shares_of(alice).count() == 1


def test_bad_wishes_are_refused(alice: "User", chat: Conversation, clean_redis: None) -> None:
    client = Client()
    client.force_login(alice)
    with as_user(alice.pk):
        answer, question = answers(chat, "answer"), answers(chat, "question")
        running = say(chat, "assistant", "", question, status="running")
        other = Conversation.objects.create(owner=alice)
    good = {"conversation": str(chat.pk), "message": str(answer.pk)}

    def post(**changes: Any) -> int:
        body = good | changes
        return client.post("/api/shares", body, content_type="application/json").status_code

    assert post() == 201
    assert post(message=str(question.pk)) == 400
    assert post(message=str(running.pk)) == 409
    assert post(conversation=str(other.pk)) == 404
    assert post(kind="forever") == 400
    assert post(expires_in_days=0) == 400
    assert post(expires_in_days=10**9) == 400
    assert post(message="nonsense") == 400


def test_the_list_goes_on_behind_a_page(
    alice: "User", chat: Conversation, clean_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "PAGE_SIZE", 2)
    tokens = [share(alice, chat) for _ in range(5)]
    client = Client()
    client.force_login(alice)
    listed: list[str] = []
    before: str | None = ""
    while before is not None:
        page = client.get("/api/shares", {"before": before}).json()
        listed += [item["url"].removeprefix("/s/") for item in page["items"]]
        before = page["next"]
    assert listed == tokens[::-1]
    assert client.delete("/api/shares").json() == {"revoked": 5}


def test_raw_sql_shows_a_stranger_the_snapshot_alone(
    alice: "User", charlie: "User", chat: Conversation
) -> None:
    token = share(alice, chat)
    with as_user(charlie.pk), connection.cursor() as cursor:

        def rows(query: str, *values: str) -> list[Any]:
            cursor.execute(query, values)
            return cursor.fetchall()

        assert rows("SELECT * FROM chat_share") == []
        assert rows("SELECT * FROM chat_message") == []
        [(shown,)] = rows("SELECT chat_read_share(%s)::text", sharing._hash_of(token))
        assert "question" in shown
        assert "secret" not in shown
        assert rows("SELECT chat_read_share(%s)", "unknown") == [(None,)]
        # The function has given its wider sight back.
        assert rows("SELECT current_setting('vitrine.scope')") == [(f"user:{charlie.pk}",)]
        assert rows("SELECT * FROM chat_message") == []
        cursor.execute("UPDATE chat_share SET expires_at = NULL")
        assert cursor.rowcount == 0


def test_a_link_planted_on_a_strangers_chat_shows_nothing(
    alice: "User", charlie: "User", chat: Conversation
) -> None:
    """Whatever a bug in a view would let Charlie write, the function reads as its owner."""
    with as_user(alice.pk):
        message = answers(chat, "answer")
    with as_user(charlie.pk):
        Share.objects.create(
            owner=charlie,
            conversation_id=chat.pk,
            message_id=message.pk,
            kind="live",
            token_hash=sharing._hash_of("planted"),
        )
    assert is_gone("planted")


def test_a_link_is_closed_while_its_owner_is_suspended(
    alice: "User", bob: "User", chat: Conversation, clean_redis: None
) -> None:
    token = share(alice, chat)
    client = Client()
    client.force_login(bob)
    for is_active, status in ((False, 404), (True, 200)):
        alice.is_active = is_active
        alice.save(update_fields=["is_active"])
        assert client.get(f"/s/{token}").status_code == status
        assert is_gone(token) is not is_active
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    assert client.post(f"/s/{token}/continue").status_code == 404
