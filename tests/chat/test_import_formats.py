"""Files of other systems become our trees. The fixtures are written after the formats, by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.transfer import reading
from chat.transfer.portable import Chat
from tests.chat.test_transfer import zip_of


def read(path: Path, value: Any) -> list[Any]:
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return list(reading.read_chats(path))


def said(chat: Chat) -> list[tuple[str, str | None, str]]:
    """(role, what the parent begins with, text) of each message."""
    texts = {
        turn.id: "".join(p["text"] for p in turn.fields["parts"] if p["type"] == "text")
        for turn in chat.messages
    }
    return [
        (turn.fields["role"], texts[turn.parent] if turn.parent else None, texts[turn.id])
        for turn in chat.messages
    ]


# --- ChatGPT ---------------------------------------------------------------------------------------


def node(id_: str, parent: str | None, role: str | None, *parts: Any, **more: Any) -> Any:
    content = more.pop("content", {"content_type": "text", "parts": list(parts)})
    author = {"role": role, **more.pop("author", {})}
    message = {"id": id_, "author": author, "content": content, **more} if role else None
    return {"id": id_, "parent": parent, "children": [], "message": message}


def gpt(*nodes: Any, current: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "title": "Trip to Oslo",
        "create_time": 1_700_000_000.25,
        "update_time": 1_700_000_900.5,
        "mapping": {entry["id"]: entry for entry in nodes},
        "current_node": current or nodes[-1]["id"],
        "conversation_id": "c-1",
        **more,
    }


TRIP = gpt(
    node("root", None, None),
    node("sys", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
    node("ctx", "sys", "user", content={"content_type": "user_editable_context", "text": "secret"}),
    node("q1", "ctx", "user", "When does the train leave?", create_time=1_700_000_001.0),
    node("think", "q1", "assistant",
         content={"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Let me look"}]}),
    node("call", "think", "assistant", recipient="web.run",
         content={"content_type": "code", "text": '{"q": "train"}', "language": "unknown"}),
    node("tool", "call", "tool", author={"name": "web.run"},
         content={"content_type": "tether_browsing_display", "result": "At nine"}),
    node("a1", "tool", "assistant", "At nine.", metadata={"model_slug": "gpt-9"}),
    node("a2", "q1", "assistant", "I do not know."),
    node("q2", "a1", "user", "And back?",
         {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}),
    node("a3", "q2", "assistant", "At ten.", "Or at eleven."),
    default_model_slug="gpt-8",
)  # fmt: skip


def test_a_chatgpt_tree(tmp_path: Path) -> None:
    (chat,) = read(tmp_path / "conversations.json", [TRIP])
    assert said(chat) == [
        ("user", None, "When does the train leave?"),
        ("assistant", "When does the train leave?", "At nine."),
        ("user", "At nine.", "And back?\n\n[Image left out]"),
        ("assistant", "And back?\n\n[Image left out]", "At ten.\n\nOr at eleven."),
        ("assistant", "When does the train leave?", "I do not know."),
    ]
    answer = chat.messages[1].fields
    assert [part["type"] for part in answer["parts"]] == [
        "reasoning",
        "tool_call",
        "tool_result",
        "text",
    ]
    call, result = answer["parts"][1:3]
    assert (call["name"], call["arguments"]) == ("web.run", '{"q": "train"}')
    assert result == {
        "type": "tool_result", "id": call["id"], "content": "At nine", "is_error": False,
    }  # fmt: skip
    assert answer["model"] == "gpt-9"
    assert chat.messages[-1].fields["model"] == "gpt-8", "named by the conversation only"
    assert chat.notes == {"images": 1}
    assert (chat.origin, chat.title) == ("chatgpt:c-1", "Trip to Oslo")
    assert chat.fields["updated_at"].timestamp() == 1_700_000_900.5
    assert "secret" not in str(chat)


def test_the_current_branch_is_the_one_that_is_shown(tmp_path: Path) -> None:
    (chat,) = read(tmp_path / "conversations.json", [TRIP])
    chosen = {turn.id: turn.fields.get("chosen") for turn in chat.messages}
    if chosen["a3"] is not None:
        assert chosen == {"q1": 1, "a1": 1, "q2": 1, "a3": 1, "a2": 0}


def test_sharded_zips_and_old_ones(tmp_path: Path) -> None:
    shards = {
        "export_manifest.json": b"{}",
        "user.json": b'{"id": "user-1"}',
        "chat.html": b"<html>",
        "conversations-000.json": json.dumps([TRIP]).encode(),
        "conversations-001.json": json.dumps([{**TRIP, "title": "Second"}]).encode(),
    }
    assert [c.title for c in read(tmp_path / "a.zip", zip_of(shards))] == ["Trip to Oslo", "Second"]
    old = {"folder/conversations.json": json.dumps([TRIP]).encode(), "user.json": b"{}"}
    assert [c.title for c in read(tmp_path / "b.zip", zip_of(old))] == ["Trip to Oslo"]


def test_an_answer_that_forks_in_the_middle_is_two(tmp_path: Path) -> None:
    chat = gpt(
        node("q", None, "user", "Hi"),
        node("a", "q", "assistant", "Well,"),
        node("b", "a", "assistant", "yes."),
        node("c", "a", "assistant", "no."),
    )
    (found,) = read(tmp_path / "c.json", [chat])
    texts = [text for _, _, text in said(found)]
    assert texts == ["Hi", "Well,\n\nyes.", "Well,\n\nno."]


def test_a_long_chain_of_steps_takes_no_time(tmp_path: Path) -> None:
    steps = [node(f"s{n}", f"s{n - 1}" if n else "q", "assistant", "x") for n in range(20_000)]
    (found,) = read(tmp_path / "c.json", [gpt(node("q", None, "user", "Hi"), *steps)])
    assert len(found.messages) == 2
    forks = [
        entry
        for n in range(4_000)
        for entry in (
            node(f"s{n}", f"s{n - 1}" if n else "q", "assistant", "x"),
            node(f"t{n}", f"s{n - 1}" if n else "q", "assistant", "y"),
        )
    ]
    (refused,) = read(tmp_path / "d.json", [gpt(node("q", None, "user", "Hi"), *forks)])
    assert "fork too often" in refused.reason


def test_nodes_in_a_circle_are_refused(tmp_path: Path) -> None:
    chat = gpt(node("a", "b", "user", "x"), node("b", "a", "assistant", "y"))
    (skipped, kept) = read(tmp_path / "c.json", [chat, TRIP])
    assert "circle" in skipped.reason
    assert isinstance(kept, Chat)


def test_the_others_go_on_behind_a_bad_chat(tmp_path: Path) -> None:
    data = b'[{"title": "Broken", "mapping": {"a": }}, ' + json.dumps(TRIP).encode() + b", 7, {}]"
    bad, kept, number, empty = read(tmp_path / "c.json", data)
    assert (bad.title, bad.reason) == ("Broken", "It is no valid JSON.")
    assert isinstance(kept, Chat)
    assert number.reason == "It is no chat."
    assert "none of the formats" in empty.reason


def test_a_chat_that_stands_alone_is_bounded_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_CHAT_BYTES", 20_000)
    more = {f"more-{n}": "x" * 6_000 for n in range(4)}
    small, large, next_one = read(
        tmp_path / "c.json",
        b"\n".join(json.dumps(value).encode() for value in (TRIP, TRIP | more, TRIP)),
    )
    assert isinstance(small, Chat)
    assert (large.title, large.reason) == ("Trip to Oslo", "It is too large.")
    assert isinstance(next_one, Chat)


# --- Open WebUI ------------------------------------------------------------------------------------

REASONED = """<details type="reasoning" done="true" duration="3">
<summary>Thought for 3 seconds</summary>
> Is it &gt; 2?
> Yes.
</details>
<details type="tool_calls" done="true" id="call_1" name="calc" arguments="&quot;1+1&quot;" result="2">
<summary>Tool Executed</summary>
</details>
It is **2**."""
WEBUI = {
    "id": "w-1",
    "user_id": "u",
    "title": "Sums",
    "chat": {
        "title": "Sums",
        "models": ["llama"],
        "system": "Be brief.",
        "history": {
            "currentId": "m2",
            "messages": {
                "m1": {"id": "m1", "parentId": None, "childrenIds": ["m2", "m3"], "role": "user",
                       "content": "1+1?", "timestamp": 1_700_000_000,
                       "files": [{"type": "image", "url": "data:image/png;base64,xx"}]},
                "m2": {"id": "m2", "parentId": "m1", "childrenIds": [], "role": "assistant",
                       "content": REASONED, "model": "llama", "timestamp": 1_700_000_001,
                       "done": True},
                "m3": {"id": "m3", "parentId": "m1", "childrenIds": [], "role": "assistant",
                       "content": "", "error": {"content": "Out of memory"}, "model": "llama"},
            },
        },
        "messages": [],
    },
    "created_at": 1_700_000_000,
    "updated_at": 1_700_000_100,
}  # fmt: skip


def test_an_open_webui_tree(tmp_path: Path) -> None:
    (chat,) = read(tmp_path / "chat-export.json", [WEBUI])
    question, answer, failed = chat.messages
    assert said(chat)[0][2] == "1+1?\n\n[Image left out]"
    assert answer.fields["parts"] == [
        {"type": "reasoning", "text": "Is it > 2?\nYes."},
        {"type": "tool_call", "id": "call_1", "name": "calc", "arguments": '"1+1"'},
        {"type": "tool_result", "id": "call_1", "content": "2", "is_error": False},
        {"type": "text", "text": "It is **2**."},
    ]
    assert (failed.fields["status"], failed.parent) == ("failed", question.id)
    assert chat.fields["system_prompt"] == "Be brief."
    assert (chat.origin, chat.notes) == ("openwebui:w-1", {"images": 1})


def test_one_open_webui_chat_that_is_no_list(tmp_path: Path) -> None:
    (chat,) = read(tmp_path / "chat.json", WEBUI)
    assert chat.title == "Sums"


@pytest.mark.timeout(20)
def test_unclosed_details_take_no_time(tmp_path: Path) -> None:
    words = '<details type="reasoning" a="b">' * 20_000
    for text in (words, "</details>" + words):
        chat = json.loads(json.dumps(WEBUI))
        chat["chat"]["history"]["messages"]["m2"]["content"] = text
        assert len(read(tmp_path / "c.json", chat)) == 1


# --- LibreChat -------------------------------------------------------------------------------------

NO_PARENT = "00000000-0000-0000-0000-000000000000"


def libre(id_: str, parent: str, text: str, **more: Any) -> dict[str, Any]:
    is_user = id_.startswith("q")
    return {
        "messageId": id_,
        "parentMessageId": parent,
        "text": text,
        "isCreatedByUser": is_user,
        "sender": "User" if is_user else "GPT",
        "model": None if is_user else "gpt-7",
        "createdAt": f"2025-01-01T00:00:{int(id_[1:]):02}.000Z",
        **more,
    }


LIBRE = {
    "conversationId": "l-1",
    "endpoint": "openAI",
    "title": "Hello",
    "exportAt": "12:00:00 GMT+0000",
    "branches": True,
    "recursive": False,
    "options": {"model": "gpt-7", "promptPrefix": "Be kind."},
    "messages": [
        libre("q1", NO_PARENT, "Hi"),
        libre("a2", "q1", "", content=[
            {"type": "think", "think": "Hm."},
            {"type": "tool_call", "tool_call": {"id": "t", "name": "clock", "args": {"a": 1},
                                                "output": "noon"}},
            {"type": "text", "text": {"value": "It is noon."}},
            {"type": "image_file", "image_file": {}},
        ]),
        libre("a3", "q1", "Good day", unfinished=True),
        libre("q4", "a3", "Bye"),
    ],
}  # fmt: skip


def test_a_flat_librechat_file(tmp_path: Path) -> None:
    (chat,) = read(tmp_path / "Hello.json", LIBRE)
    assert said(chat) == [
        ("user", None, "Hi"),
        ("assistant", "Hi", "It is noon.\n\n[Image left out]"),
        ("assistant", "Hi", "Good day"),
        ("user", "Good day", "Bye"),
    ]
    kinds = [part["type"] for part in chat.messages[1].fields["parts"]]
    assert kinds == ["reasoning", "tool_call", "tool_result", "text"]
    assert chat.messages[2].fields["status"] == "stopped"
    assert chat.fields["system_prompt"] == "Be kind."


@pytest.mark.parametrize("key", ["messages", "messagesTree"])
def test_a_recursive_librechat_file_is_the_same_chat(tmp_path: Path, key: str) -> None:
    q1, a2, a3, q4 = (dict(message) for message in LIBRE["messages"])  # type: ignore[call-overload]
    tree = {**q1, "children": [{**a2, "children": []}, {**a3, "children": [q4]}]}
    flat = {name: value for name, value in LIBRE.items() if name != "messages"}
    (nested,) = read(tmp_path / "n.json", {**flat, "recursive": True, key: [tree]})
    (chat,) = read(tmp_path / "f.json", LIBRE)
    assert said(nested) == said(chat)


def test_a_zip_of_librechat_files(tmp_path: Path) -> None:
    files = {f"{n}.json": json.dumps(LIBRE).encode() for n in range(3)}
    assert len(read(tmp_path / "all.zip", zip_of(files))) == 3


# --- whatever comes --------------------------------------------------------------------------------

KEYS = ("mapping", "message", "content", "parts", "author", "role", "parent", "id", "text", "history",
        "messages", "chat", "parentId", "currentId", "conversationId", "messageId", "children",
        "type", "tool_call")  # fmt: skip
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=25,
)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("chat", "times"),
    [
        (TRIP, ("1700000000.25", "1700000001.0")),
        (WEBUI, ("1700000000", "1700000001")),
        (LIBRE, ('"2025-01-01T00:00:01.000Z"', '"2025-01-01T00:00:02.000Z"')),
    ],
)
@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400])
def test_a_number_without_end_is_no_time(
    tmp_path: Path, chat: Any, times: tuple[str, str], number: str
) -> None:
    data = json.dumps(chat)
    for time in times:
        assert time in data
        data = data.replace(time, number)
    (found,) = read(tmp_path / "c.json", data.encode())
    assert isinstance(found, Chat), found


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk)
def test_no_shape_breaks_the_reading(tmp_path: Path, value: Any) -> None:
    found = read(tmp_path / "junk.json", [value, TRIP])
    assert len(found) == 2
    assert isinstance(found[1], Chat)
    for chat in (TRIP, WEBUI, LIBRE):
        for key in chat:
            assert len(read(tmp_path / "junk.json", [{**chat, key: value}])) == 1
