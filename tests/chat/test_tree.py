"""The tree over a real socket and /api: nothing that was said is lost, whoever does what, and when."""

import json
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat import actions, branches, history, tree
from chat.errors import NotFound
from chat.models import Conversation, Generation, Message
from chat.rights import Rights
from chat.transfer.portable import chat_of, to_json
from tests.chat.reader import Frame, Reader, assert_gapless
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User


def exchange(tab: Reader, text: str = "Hello", **fields: Any) -> Frame:
    """A question with its finished answer."""
    accepted = tab.send(text, model="short", **fields)
    assert tab.hear_end(accepted["run"])["kind"] == "finished"
    return accepted


def begun(tab: Reader) -> Frame:
    """A question whose answer is being written, for some seconds."""
    accepted = tab.send("Write on and on")
    tab.hear_events(accepted["run"], 2)
    return accepted


def stopped(tab: Reader, run: str, chars: int) -> Frame:
    """The end of a run that is stopped after so many characters."""
    tab.hear_text(run, chars)
    tab.say({"type": "run.stop", "run": run, "chars": chars})
    end = tab.hear_end(run)
    assert end["kind"] == "stopped", end
    return end


def again(tab: Reader, kind: str, answer: str, **fields: Any) -> Frame:
    """Another answer; returns answer.accepted."""
    client_id = fields.pop("client_id", uuid4().hex)
    tab.say({"type": kind, "client_id": client_id, "answer": answer, **fields})
    return tab.hear_until(type="answer.accepted", client_id=client_id)


def messages_of(tab: Reader, accepted: Frame) -> dict[str, Frame]:
    whole = tab.conversation(accepted["conversation"]["id"])
    return {message["id"]: message for message in whole["messages"]}


def shown(tab: Reader, accepted: Frame) -> list[str]:
    """Ids of the branch that a reload would show, as the browser derives them."""
    children: dict[str | None, list[Frame]] = {}
    for message in messages_of(tab, accepted).values():
        children.setdefault(message["parent"], []).append(message)
    path: list[str] = []
    while siblings := children.get(path[-1] if path else None):
        path.append(max(siblings, key=lambda message: int(message["chosen"]))["id"])
    return path


# --- edit, regenerate, continue ---------------------------------------------------------------------


def test_an_edited_question_is_a_sibling_with_an_answer_of_its_own(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    conversation = first["conversation"]["id"]
    edited = exchange(alices_tab, "Hello again", conversation=conversation, parent=None)
    messages = messages_of(alices_tab, first)
    assert len(messages) == 4
    assert messages[first["message"]["id"]]["text"] == "Hello"
    assert messages[edited["message"]["id"]]["parent"] is None
    assert shown(alices_tab, first) == [edited["message"]["id"], edited["answer"]["id"]]


def test_an_answer_is_written_anew_beside_the_first(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    before = alices_tab.saved(first)
    second = again(alices_tab, "answer.regenerate", first["answer"]["id"])
    assert alices_tab.hear_end(second["run"])["kind"] == "finished"
    messages = messages_of(alices_tab, first)
    assert messages[first["answer"]["id"]] == before, "finished messages are immutable"
    new = messages[second["answer"]["id"]]
    assert (new["parent"], new["model"]) == (first["message"]["id"], "short")
    assert new["text"] == alices_tab.text(second["run"])
    assert shown(alices_tab, first)[-1] == new["id"]


def test_a_wish_asks_for_another_answer_and_the_model_sees_the_one_before(
    alices_tab: Reader,
) -> None:
    first = begun(alices_tab)
    first_end = stopped(alices_tab, first["run"], 40)
    short = again(alices_tab, "answer.regenerate", first["answer"]["id"], wish="shorter")
    short_end = stopped(alices_tab, short["run"], 40)
    more = short_end["usage"]["prompt_tokens"] - first_end["usage"]["prompt_tokens"]
    assert more > 10, "the answer and the wish are in the prompt"
    assert len(messages_of(alices_tab, first)) == 3, "and nowhere else"


def test_the_same_client_id_is_one_answer(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    answer = first["answer"]["id"]
    one, two = (again(alices_tab, "answer.regenerate", answer, client_id="twice") for _ in range(2))
    assert one["answer"]["id"] == two["answer"]["id"]
    assert len(messages_of(alices_tab, first)) == 3


def test_a_stopped_answer_goes_on_as_a_sibling(alices_tab: Reader) -> None:
    first = begun(alices_tab)
    stopped(alices_tab, first["run"], 40)
    cut = alices_tab.saved(first)
    assert 0 < len(cut["text"]) <= 40
    more = again(alices_tab, "answer.continue", first["answer"]["id"])
    assert alices_tab.hear_end(more["run"])["kind"] in ("finished", "stopped")
    assert_gapless(alices_tab.numbered(more["run"]))
    whole = messages_of(alices_tab, first)[more["answer"]["id"]]
    assert whole["text"].startswith(cut["text"])
    assert len(whole["text"]) > len(cut["text"])
    assert whole["text"] == alices_tab.text(more["run"]), "saved == joined events"
    assert alices_tab.saved(first) == cut


def test_a_whole_answer_is_not_continued(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    edit = f"/api/messages/{first['answer']['id']}/edit"
    made = alices_tab.change("POST", edit, text="All of it.", client_id="whole").json()
    whole = made["message"]["id"]
    alices_tab.say({"type": "answer.continue", "client_id": "c", "answer": whole})
    assert alices_tab.hear_until(type="error")["code"] == "bad_frame"


def test_a_running_answer_is_neither_redone_nor_continued_nor_edited(alices_tab: Reader) -> None:
    first = begun(alices_tab)
    answer = first["answer"]["id"]
    for kind in ("answer.regenerate", "answer.continue"):
        alices_tab.say({"type": kind, "client_id": uuid4().hex, "answer": answer})
        assert alices_tab.hear_until(type="error")["code"] == "conflict"
    edit = {"text": "mine", "client_id": uuid4().hex}
    assert alices_tab.change("POST", f"/api/messages/{answer}/edit", **edit).status_code == 409
    assert alices_tab.hear_end(first["run"])["kind"] == "finished"


def test_several_models_answer_side_by_side(alices_tab: Reader) -> None:
    both = alices_tab.send("Both of you", model="short", beside=["endless"])
    assert [answer["model"] for answer in both["answers"]] == ["short", "endless"]
    runs = [answer["run"] for answer in both["answers"]]
    for run in runs:
        alices_tab.hear_end(run)
    messages = messages_of(alices_tab, both)
    answers = [messages[answer["id"]] for answer in both["answers"]]
    assert [answer["text"] for answer in answers] == [alices_tab.text(run) for run in runs]
    assert answers[0]["chosen"] == answers[1]["chosen"], "nobody has chosen yet"
    again_sent = alices_tab.send("Both of you", client_id=both["client_id"], beside=["endless"])
    assert [a["id"] for a in again_sent["answers"]] == [a["id"] for a in both["answers"]]
    conversation, parent = both["conversation"]["id"], answers[1]["id"]
    exchange(alices_tab, "The second", conversation=conversation, parent=parent)
    messages = messages_of(alices_tab, both)
    assert messages[parent]["chosen"] > messages[answers[0]["id"]]["chosen"]


def test_too_many_side_by_side_are_refused_as_a_whole(alices_tab: Reader) -> None:
    frame = {"type": "message.send", "client_id": "many", "text": "All of you", "model": "short"}
    alices_tab.say({**frame, "beside": ["short", "short"]})
    assert alices_tab.hear_until(type="error")["code"] == "too_many_runs"
    alices_tab.say({**frame, "beside": ["none-such"]})
    assert alices_tab.hear_until(type="error")["code"] == "model_not_found"
    assert alices_tab.client.get("/api/conversations").json()["items"] == []


# --- choose, edit an answer, delete, branch ------------------------------------------------------------


def test_the_choice_is_remembered_and_moves_no_chat_to_the_top(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    second = again(alices_tab, "answer.regenerate", first["answer"]["id"])
    alices_tab.hear_end(second["run"])
    newer = exchange(alices_tab, "Another chat")
    path = f"/api/messages/{first['answer']['id']}/choose"
    chosen = alices_tab.change("POST", path).json()["conversation"]
    assert shown(alices_tab, first)[-1] == first["answer"]["id"]
    repeated = alices_tab.change("POST", path, version=chosen["version"])
    assert repeated.json()["conversation"]["version"] == chosen["version"], "nothing has changed"
    items = alices_tab.client.get("/api/conversations").json()["items"]
    assert items[0]["id"] == newer["conversation"]["id"]
    late = alices_tab.change("POST", path, version=1)
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")


def test_an_answer_is_edited_beside_itself(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    before = alices_tab.saved(first)
    path = f"/api/messages/{first['answer']['id']}/edit"
    made = [
        alices_tab.change("POST", path, text=" Better. ", client_id="edit").json()["message"]
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert (made[0]["text"], made[0]["edited"], made[0]["parent"]) == (
        "Better.",
        True,
        first["message"]["id"],
    )
    assert alices_tab.saved(first) == before
    assert shown(alices_tab, first)[-1] == made[0]["id"]
    follow_up = exchange(
        alices_tab,
        "And then?",
        conversation=first["conversation"]["id"],
        parent=made[0]["id"],
    )
    assert follow_up["answer"]["id"] in shown(alices_tab, first)
    assert alices_tab.change("POST", path, text=" ", client_id="e").status_code == 400


def delete(tab: Reader, message: str, *, replies: bool, deletion: str = "d", **more: Any) -> Any:
    query = f"deletion={deletion}&replies={str(replies).lower()}"
    for name, value in more.items():
        query += f"&{name}={value}"
    return tab.change("DELETE", f"/api/messages/{message}?{query}")


def test_a_deletion_with_replies_is_undone_to_the_letter(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    conversation = first["conversation"]["id"]
    exchange(alices_tab, "More", conversation=conversation, parent=first["answer"]["id"])
    before = messages_of(alices_tab, first)
    for _ in range(2):  # the second time nothing happens
        response = delete(alices_tab, first["answer"]["id"], replies=True)
        assert response.status_code == 200, response.text
        assert [m["id"] for m in response.json()["messages"]] == [first["message"]["id"]]
    undo = f"/api/conversations/{conversation}/messages/restore"
    for _ in range(2):
        assert alices_tab.change("POST", undo, deletion="d").status_code == 200
    assert messages_of(alices_tab, first) == before
    assert alices_tab.change("POST", undo, deletion="other").status_code == 404


def test_a_deletion_without_replies_leaves_the_place(alices_tab: Reader) -> None:
    first = exchange(alices_tab, "A secret word")
    conversation = first["conversation"]["id"]
    delete(alices_tab, first["message"]["id"], replies=False)
    place, answer = messages_of(alices_tab, first).values()
    assert (place["status"], place["text"], place["parts"]) == ("deleted", "", [])
    assert answer["status"] == "complete"
    more = exchange(alices_tab, "More", conversation=conversation, parent=answer["id"])
    assert len(shown(alices_tab, first)) == 4
    # Edited anew in the place of what is deleted, and deleted with all below it: nothing is left.
    delete(alices_tab, answer["id"], replies=True, deletion="rest")
    assert messages_of(alices_tab, first) == {}
    late = {"conversation": conversation, "parent": answer["id"]}
    frame = {"type": "message.send", "client_id": "late", "text": "hi", **late}
    alices_tab.say(frame)
    assert alices_tab.hear_until(type="error", client_id="late")["code"] == "not_found"
    assert more["message"]["id"]


@pytest.mark.django_db(transaction=True)
def test_a_deletion_reads_no_texts(alice: "User") -> None:
    """Of a chat that may hold megabytes."""
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice)
        rows: list[Message] = []
        for number in range(12):
            parent = rows[-1] if rows else None
            role = ("user", "assistant")[number % 2]
            rows.append(
                Message.objects.create(conversation=chat, parent=parent, role=role, text="x")
            )
        with CaptureQueriesContext(connection) as queries:
            done = tree.delete(alice, rows[2].pk, "d", with_replies=True, version=None)
    assert set(done.message_ids) == {row.pk for row in rows[2:]}
    reads = [one["sql"] for one in queries if one["sql"].startswith("SELECT")]
    of_all = [sql for sql in reads if '"chat_message"' in sql and "LIMIT" not in sql]
    assert len(of_all) == 1
    assert '"text"' not in of_all[0]


def test_who_has_not_seen_the_newest_deletes_nothing(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    version = first["conversation"]["version"]
    conversation, answer = first["conversation"]["id"], first["answer"]["id"]
    exchange(alices_tab, "From the other tab", conversation=conversation, parent=answer)
    before = messages_of(alices_tab, first)
    response = delete(alices_tab, answer, replies=True, version=version)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "conflict")
    assert messages_of(alices_tab, first) == before


def test_deleting_stops_what_is_being_written(alices_tab: Reader) -> None:
    first = begun(alices_tab)
    assert delete(alices_tab, first["message"]["id"], replies=True).status_code == 200
    assert alices_tab.hear_end(first["run"], timeout_s=10)["kind"] == "stopped"
    conversation = first["conversation"]["id"]
    alices_tab.change("POST", f"/api/conversations/{conversation}/messages/restore", deletion="d")
    saved = alices_tab.saved(first)
    assert (saved["status"], saved["text"]) == ("stopped", alices_tab.text(first["run"]))


def test_a_branch_becomes_a_chat_of_its_own(alices_tab: Reader) -> None:
    first = exchange(alices_tab)
    conversation = first["conversation"]["id"]
    exchange(alices_tab, "More", conversation=conversation, parent=first["answer"]["id"])
    before = messages_of(alices_tab, first)
    path = f"/api/messages/{first['answer']['id']}/branch-off"
    made = [alices_tab.change("POST", path, client_id="branch") for _ in range(2)]
    assert [response.status_code for response in made] == [201, 201]
    summary = made[0].json()["conversation"]
    assert made[1].json()["conversation"]["id"] == summary["id"] != conversation
    copies = alices_tab.conversation(summary["id"])["messages"]
    assert [copy["text"] for copy in copies] == [m["text"] for m in list(before.values())[:2]]
    exchange(alices_tab, "Elsewhere", conversation=summary["id"], parent=copies[-1]["id"])
    assert messages_of(alices_tab, first) == before


# --- Charlie ----------------------------------------------------------------------------------------


def test_charlie_finds_no_door_of_the_tree(alices_tab: Reader, chat_site: Any) -> None:
    first = exchange(alices_tab)
    delete(alices_tab, first["answer"]["id"], replies=True, deletion="alices")
    before = messages_of(alices_tab, first)
    with Reader.signed_up(chat_site, "charlie") as charlie:
        charlie.client.get("/")
        for theirs, unknown in [
            (first["message"]["id"], str(uuid4())),
            (first["answer"]["id"], str(uuid4())),
        ]:
            for method, path, body in [
                ("POST", "/api/messages/{}/choose", {}),
                ("POST", "/api/messages/{}/edit", {"text": "mine", "client_id": "c"}),
                ("POST", "/api/messages/{}/branch-off", {"client_id": "c"}),
                ("DELETE", "/api/messages/{}?deletion=alices&replies=true", {}),
            ]:
                tried = charlie.change(method, path.format(theirs), **body)
                missing = charlie.change(method, path.format(unknown), **body)
                assert tried.status_code == missing.status_code == 404, path
                assert tried.json() == missing.json()
            for kind in ("answer.regenerate", "answer.continue"):
                charlie.say({"type": kind, "client_id": uuid4().hex, "answer": theirs})
                assert charlie.hear_until(type="error")["code"] == "not_found"
        restore = f"/api/conversations/{first['conversation']['id']}/messages/restore"
        assert charlie.change("POST", restore, deletion="alices").status_code == 404
        charlie.client.close()
    assert messages_of(alices_tab, first) == before


@pytest.mark.django_db(transaction=True)
def test_the_database_hides_deleted_messages_from_strangers_too(alice: "User", bob: "User") -> None:
    with as_user(alice.pk):
        draft = actions.Draft(client_id=uuid4().hex, text="Hi", model="vitrine-small")
        sent = actions.send_message(Rights(alice), draft, lease_owner="this process")
        tree.delete(alice, sent.message.pk, "d", with_replies=True, version=None)
        assert Message.with_deleted.filter(conversation=sent.conversation).count() == 2
        assert branches.visible(Message.with_deleted.all()) == []
    with as_user(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chat_message")
        assert cursor.fetchone() == (0,)
        cursor.execute("UPDATE chat_message SET deleted_at = NULL")
        assert cursor.rowcount == 0


@pytest.mark.django_db(transaction=True)
def test_what_is_purged_is_gone_for_good_and_its_place_says_nothing(alice: "User") -> None:
    later = timezone.now() + timedelta(hours=1)
    with as_user(alice.pk):
        draft = actions.Draft(client_id=uuid4().hex, text="A secret", model="vitrine-small")
        sent = actions.send_message(Rights(alice), draft, lease_owner="this process")
        question, answer = sent.message.pk, sent.answer.pk
        conversation = sent.conversation.pk
        tree.delete(alice, question, "place", with_replies=False, version=None)
        assert tree.purge(later - timedelta(hours=2)) == 0, "the undo is not over"
        assert tree.purge(later) == 1
        place = Message.with_deleted.get(pk=question)
        assert (place.text, place.parts) == ("", [])
        assert Message.objects.filter(pk=answer).exists()
        with pytest.raises(NotFound):
            tree.restore(alice, conversation, "place")
        tree.delete(alice, answer, "rest", with_replies=True, version=None)
        assert tree.purge(later) == 1
        assert not Message.with_deleted.filter(conversation=conversation).exists()
        assert not Generation.objects.filter(conversation=conversation).exists()


@pytest.mark.django_db(transaction=True)
def test_a_place_keeps_nothing_of_what_its_answer_said(alice: "User") -> None:
    with as_user(alice.pk):
        draft = actions.Draft(client_id=uuid4().hex, text="Hi", model="vitrine-small")
        sent = actions.send_message(Rights(alice), draft, lease_owner="this process")
        told = {
            "parts": [{"type": "text", "text": "A secret"}],
            "error": {"code": "x", "message": "A secret"},
            "feedback": {"rating": "good", "reasons": [], "comment": "A secret", "at": ""},
            "sources": {"collections": [], "documents": [{"id": str(uuid4()), "name": "A secret"}]},
            "found": {"query": "A secret", "excerpts": [], "is_whole": False},
            "from_cache": {"asked_at": "", "question": "A secret", "similarity": 1.0},
            "left_out": {"before": "A secret", "num_messages": 1, "summary": None},
        }
        rows = Message.objects.filter(pk=sent.answer.pk)
        rows.update(status="complete", text="A secret", **told)
        Generation.objects.filter(message=sent.answer).update(status="finished")
        more = replace(
            draft,
            client_id=uuid4().hex,
            conversation_id=sent.conversation.pk,
            parent_id=sent.answer.pk,
        )
        actions.send_message(Rights(alice), more, lease_owner="this process")
        tree.delete(alice, sent.answer.pk, "place", with_replies=False, version=None)
        chat = chat_of(sent.conversation, history.all_messages(sent.conversation))
        assert "A secret" not in json.dumps(to_json(chat)), "nor has an export, before the purge"
        tree.purge(timezone.now() + timedelta(hours=1))
        place = Message.with_deleted.get(pk=sent.answer.pk)
        assert place.text == ""
        assert not any(getattr(place, name) for name in told)
        assert not Generation.objects.filter(message=sent.answer).exists(), "its tokens say it too"


@pytest.mark.django_db(transaction=True)
def test_places_of_before_lose_what_they_kept(alice: "User") -> None:
    forget = import_module("chat.migrations.0028_places_say_nothing")._FORGET
    found = {"query": "A secret", "excerpts": [], "is_whole": False}
    with as_user(alice.pk):
        chat = Conversation.objects.create(owner=alice)
        fields = {"conversation": chat, "role": "assistant", "found": found}
        now = timezone.now()
        place = Message.with_deleted.create(**fields, deleted_at=now)
        may_return = Message.with_deleted.create(**fields, deleted_at=now, deletion="d")
        there = Message.with_deleted.create(**fields)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(forget)
    with as_user(alice.pk):
        kept = {row.pk: row.found for row in Message.with_deleted.all()}
    assert kept == {place.pk: None, may_return.pk: found, there.pk: found}
