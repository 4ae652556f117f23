"""Custom instructions, assistants, saved prompts: what a chat is started with, and whose they are."""

from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.chat.reader import Frame, Reader
from tests.sites import Site

CANARY = "the canary 51c9 sings"
NINA = "You are Nina, a pirate. You live in Porto."


@pytest.fixture(scope="module")
def site(vitrine_server: Site) -> Site:
    """One with the built-in model."""
    vitrine_server.set_up().close()
    return vitrine_server


@pytest.fixture
def tab(site: Site) -> Any:
    """Alice's."""
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        reader.client.get("/")
        yield reader


@pytest.fixture
def charlie(site: Site) -> Any:
    reader = Reader.signed_up(site, "charlie")
    with closing(reader.client), reader:
        reader.client.get("/")
        yield reader


def made(tab: Reader, path: str, **values: Any) -> Frame:
    response = tab.change("POST", path, **values)
    assert response.status_code == 201, response.text
    value: Frame = response.json()
    return value


def said(tab: Reader, text: str, **fields: Any) -> tuple[Frame, str]:
    """What was accepted, and what the model answered."""
    accepted = tab.send(text, **fields)
    assert tab.hear_end(accepted["run"])["kind"] == "finished"
    return accepted, tab.text(accepted["run"])


def test_a_chat_keeps_the_assistant_it_was_started_with(tab: Reader) -> None:
    nina = made(tab, "/api/assistants", name="Nina", system_prompt=NINA, starters=["Ahoy"])
    accepted, text = said(tab, "who are you?", assistant=nina["id"])
    assert "Nina" in text
    assert accepted["conversation"]["assistant"] == {"id": nina["id"], "name": "Nina", "version": 1}
    path = f"/api/assistants/{nina['id']}"
    changed = tab.change("PATCH", path, system_prompt="You are Otto, a baker.", version=1)
    assert changed.json()["version"] == 2
    assert tab.change("PATCH", path, name="Late", version=1).status_code == 409
    fields = {"conversation": accepted["conversation"]["id"], "parent": accepted["answer"]["id"]}
    again, text = said(tab, "What is your name?", **fields)
    assert "Nina" in text
    assert "Otto" in said(tab, "who are you?", assistant=nina["id"])[1]
    assert tab.change("DELETE", path).status_code == 204
    assert (
        tab.conversation(again["conversation"]["id"])["conversation"]["assistant"]["name"] == "Nina"
    )


def test_an_assistant_picks_the_collections_that_its_reader_may_read(
    tab: Reader, charlie: Reader, site: Site
) -> None:
    own, shared = (
        made(tab, "/api/collections", name=name)["id"] for name in ("Own notes", "For Charlie")
    )
    made(tab, f"/api/collections/{shared}/accesses", email=charlie.email)
    nina = made(tab, "/api/assistants", name="Nina", collections=[own, shared])
    path = f"/api/assistants/{nina['id']}"
    both = [{"id": own, "name": "Own notes"}, {"id": shared, "name": "For Charlie"}]
    assert nina["collections"] == tab.client.get(path).json()["collections"] == both
    site.execute("UPDATE chat_assistant SET is_shared = true WHERE id = %s", nina["id"])
    (theirs,) = charlie.client.get("/api/assistants").json()["items"]
    assert theirs["collections"] == both[1:]
    stolen = charlie.change("POST", "/api/assistants", name="Thief", collections=[own])
    unknown = charlie.change("POST", "/api/assistants", name="Thief", collections=[str(uuid4())])
    assert stolen.status_code == unknown.status_code == 404
    assert stolen.json() == unknown.json()
    assert tab.change("PATCH", path, collections=[]).json()["collections"] == []
    site.execute("UPDATE chat_assistant SET is_shared = false WHERE id = %s", nina["id"])


def test_an_assistants_parameters_reach_the_engine(tab: Reader) -> None:
    short = made(tab, "/api/assistants", name="Short", parameters={"max_tokens": 3, "seed": 5})
    accepted = tab.send("Write a poem about the sea.", assistant=short["id"])
    end = tab.hear_end(accepted["run"])
    assert (end["reason"], end["usage"]["completion_tokens"]) == ("length", 3)
    assert next(e for e in tab.events(accepted["run"]) if e["kind"] == "started")["seed"] == 5


def test_custom_instructions_count_for_chats_that_start_later(tab: Reader) -> None:
    before, _ = said(tab, "Hello")
    saved = tab.change("PATCH", "/api/personalisation", about_you="Call me Zelda.", version=0)
    assert saved.json()["version"] == 1
    assert tab.change("PATCH", "/api/personalisation", about_you="x", version=0).status_code == 409
    with_them, _ = said(tab, "Hello")
    told = {
        chat["conversation"]["id"]: tab.saved(chat)["usage"]["prompt_tokens"]
        for chat in (before, with_them)
    }
    assert told[with_them["conversation"]["id"]] > told[before["conversation"]["id"]]
    fields = {"conversation": before["conversation"]["id"], "parent": before["answer"]["id"]}
    said(tab, "Hello again", **fields)
    assert instructions(tab, before) == ""
    assert instructions(tab, with_them) == "About the user: Call me Zelda."
    tab.change("PATCH", "/api/personalisation", is_on=False)
    assert instructions(tab, said(tab, "Hello")[0]) == ""
    assert instructions(tab, with_them) == "About the user: Call me Zelda."


def test_chosen_models_are_kept_beside_settings_that_are_open_meanwhile(tab: Reader) -> None:
    path = "/api/personalisation"
    version = tab.client.get(path).json()["version"]
    chosen = {"default_model": "vitrine-small", "pinned_models": ["a/b", "vitrine-small"]}
    told = tab.change("PATCH", path, **chosen).json()
    assert (told | chosen, told["version"]) == (told, version)
    assert tab.change("PATCH", path, about_you="x", version=version).status_code == 200
    assert chosen.items() <= tab.client.get(path).json().items()
    assert tab.change("PATCH", path, pinned_models=["x"] * 51).status_code == 400
    page = tab.client.get("/").text.replace(" ", "")
    assert '"chosen":{"default":"vitrine-small","pinned":["a/b","vitrine-small"]}' in page


def instructions(tab: Reader, accepted: Frame) -> str:
    """What a chat tells its model about the user."""
    setup = tab.client.get(f"/api/conversations/{accepted['conversation']['id']}/setup")
    return str(setup.json()["instructions"])


def test_a_chat_begins_with_the_parameters_that_it_was_given(tab: Reader) -> None:
    nina = made(
        tab,
        "/api/assistants",
        name="Nina",
        system_prompt=NINA,
        parameters={"temperature": 0.3, "top_k": 5},
        history_strategy="summary",
    )

    def setup_of(**fields: Any) -> Frame:
        accepted, _ = said(tab, "who are you?", **fields)
        path = f"/api/conversations/{accepted['conversation']['id']}/setup"
        value: Frame = tab.client.get(path).json()
        return value

    given = {"parameters": {"temperature": 0, "seed": 7}, "history_strategy": "selective"}
    names = ("parameters", "history_strategy")
    for fields, wanted in (
        (given, [{"temperature": 0, "seed": 7}, "selective"]),
        ({}, [{}, "window"]),
        ({"assistant": nina["id"]}, [{"temperature": 0.3, "top_k": 5}, "summary"]),
        ({"assistant": nina["id"], **given}, [{"temperature": 0, "seed": 7}, "selective"]),
        ({"assistant": nina["id"], "parameters": {}}, [{}, "summary"]),
    ):
        setup = setup_of(**fields)
        assert [setup[name] for name in names] == wanted


def test_a_longest_answer_is_kept_to(tab: Reader) -> None:
    accepted, _ = said(tab, "who are you?", parameters={"max_tokens": 2})
    path = f"/api/conversations/{accepted['conversation']['id']}"
    answer = tab.client.get(path).json()["messages"][-1]
    assert (answer["finish_reason"], answer["usage"]["completion_tokens"]) == ("length", 2)


def test_a_chats_system_prompt_can_be_changed_by_who_saw_it_last(tab: Reader) -> None:
    accepted, text = said(tab, "who are you?", system_prompt=NINA)
    assert "Nina" in text
    path = f"/api/conversations/{accepted['conversation']['id']}/setup"
    setup = tab.client.get(path).json()
    assert setup["system_prompt"] == NINA
    otto = "You are Otto, a baker from Oslo."
    done = tab.change("PATCH", path, system_prompt=otto, version=setup["version"])
    assert done.status_code == 200
    late = tab.change("PATCH", path, system_prompt="", version=setup["version"])
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    fields = {"conversation": accepted["conversation"]["id"], "parent": accepted["answer"]["id"]}
    assert "Otto" in said(tab, "who are you?", **fields)[1]


def test_a_prompt_has_a_name_of_its_own(tab: Reader) -> None:
    row = made(tab, "/api/prompts", name="translate", text="Translate into {{language}}: {{text}}")
    twice = tab.change("POST", "/api/prompts", name="translate", text="x")
    assert (twice.status_code, twice.json()["error"]["code"]) == (409, "name_taken")
    made(tab, "/api/prompts", name="another", text="x")
    taken = tab.change("PATCH", f"/api/prompts/{row['id']}", name="another")
    assert taken.status_code == 409
    assert [p["name"] for p in tab.client.get("/api/prompts").json()["items"]] == [
        "another", "translate",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "values", "param"),
    [
        ("/api/prompts", {"name": "Not a name", "text": "x"}, "name"),
        ("/api/prompts", {"name": "empty", "text": "  "}, "text"),
        ("/api/prompts", {"name": "nul", "text": "a\x00b"}, "text"),
        ("/api/assistants", {"name": ""}, "name"),
        ("/api/assistants", {"name": "x" * 81}, "name"),
        ("/api/assistants", {"name": "x", "parameters": {"temperature": 9}}, "temperature"),
        ("/api/assistants", {"name": "x", "parameters": {"magic": 1}}, "magic"),
        ("/api/assistants", {"name": "x", "starters": ["x"] * 7}, "starters"),
        ("/api/assistants", {"name": "x", "history_strategy": "magic"}, "history_strategy"),
        ("/api/assistants", {"name": "x", "owner": 1}, "owner"),
    ],
)
def test_what_is_wrong_is_named(tab: Reader, path: str, values: dict[str, Any], param: str) -> None:
    response = tab.change("POST", path, **values)
    assert response.status_code == 400
    assert param in response.json()["error"]["param"]


def test_charlie_finds_nothing_of_alices(tab: Reader, charlie: Reader) -> None:
    assistant = made(tab, "/api/assistants", name=CANARY)["id"]
    prompt = made(tab, "/api/prompts", name="secret", text=CANARY)["id"]
    accepted, _ = said(tab, "Hello", system_prompt=CANARY)
    chat, message = accepted["conversation"]["id"], accepted["answer"]["id"]
    unknown = str(uuid4())
    for method, path, body in [
        ("GET", "/api/assistants/{}", assistant),
        ("PATCH", "/api/assistants/{}", assistant),
        ("DELETE", "/api/assistants/{}", assistant),
        ("PATCH", "/api/prompts/{}", prompt),
        ("DELETE", "/api/prompts/{}", prompt),
        ("GET", "/api/conversations/{}/setup", chat),
        ("PATCH", "/api/conversations/{}/setup", chat),
        ("PUT", "/api/messages/{}/pin", message),
        ("DELETE", "/api/messages/{}/pin", message),
        ("GET", "/api/summaries/{}", unknown),
    ]:
        theirs = charlie.change(method, path.format(body))
        missing = charlie.change(method, path.format(unknown))
        assert theirs.status_code == missing.status_code == 404, path
        assert theirs.json() == missing.json()
    frame = {"type": "message.send", "client_id": "evil", "text": "hi", "assistant": assistant}
    charlie.say(frame)
    assert charlie.hear_until(type="error", client_id="evil")["code"] == "not_found"
    for path in ("/api/assistants", "/api/prompts", "/api/personalisation"):
        assert CANARY not in charlie.client.get(path).text


def test_everybody_starts_chats_with_a_shared_assistant_and_its_owner_changes_it(
    site: Site, tab: Reader
) -> None:
    assert tab.change("POST", "/api/assistants", name="x", is_shared=True).status_code == 403
    operator = Reader(site, site.set_up())
    with closing(operator.client):
        operator.client.get("/")
        shared = made(operator, "/api/assistants", name="Nina", system_prompt=NINA, is_shared=True)
        assert "Nina" in said(tab, "who are you?", assistant=shared["id"])[1]
        seen = tab.client.get(f"/api/assistants/{shared['id']}").json()
        assert (seen["name"], seen["is_own"]) == ("Nina", False)
        for method in ("PATCH", "DELETE"):
            path = f"/api/assistants/{shared['id']}"
            assert tab.change(method, path, name="Mine").status_code == 404
        assert operator.change("DELETE", f"/api/assistants/{shared['id']}").status_code == 204


def test_raw_sql_in_anothers_scope_sees_and_changes_nothing(site: Site, tab: Reader) -> None:
    from webapp.servers.postgres import Postgres

    made(tab, "/api/assistants", name=CANARY)
    made(tab, "/api/prompts", name="secret", text=CANARY)
    tab.change("PATCH", "/api/personalisation", about_you=CANARY)
    tables = ("chat_assistant", "chat_savedprompt", "chat_personalisation", "chat_summary")
    conninfo = Postgres(site.data_dir).conninfo()
    with psycopg.connect(conninfo, autocommit=True) as connection:

        def count(table: str) -> int:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # type: ignore[arg-type]
            assert row is not None
            return int(row[0])

        def scope(value: str) -> None:
            connection.execute("SELECT set_config('vitrine.scope', %s, false)", [value])

        assert [count(table) for table in tables] == [0, 0, 0, 0]
        scope("user:-1")
        assert [count(table) for table in tables] == [0, 0, 0, 0]
        scope("system")
        assert all(count(table) for table in tables[:3])
        connection.execute("UPDATE chat_assistant SET is_shared = true WHERE name = %s", [CANARY])
        scope("user:-1")
        assert count("chat_assistant") > 0, "a shared one is to be read"
        assert connection.execute("DELETE FROM chat_assistant").rowcount == 0
        assert connection.execute("UPDATE chat_assistant SET name = 'x'").rowcount == 0
        scope("system")
        connection.execute("UPDATE chat_assistant SET is_shared = false")


def test_a_summary_is_made_of_a_long_chat_and_shown_for_what_is_left_out(tab: Reader) -> None:
    tab.change("PATCH", "/api/personalisation", history_strategy="summary")
    accepted, _ = said(tab, "My name is Ada. I live in Porto.")
    fields = {"conversation": accepted["conversation"]["id"]}
    left_out = None
    for number in range(40):
        tab.change("PUT", f"/api/messages/{accepted['answer']['id']}/pin") if number == 3 else None
        text = f"Write a poem about the {('sea', 'moon', 'wind', 'rain')[number % 4]}."
        accepted, _ = said(tab, text, parent=accepted["answer"]["id"], **fields)
        told = [e for e in tab.events(accepted["run"]) if e["kind"] == "left_out"]
        if told:
            left_out = told[-1]
            break
    assert left_out is not None
    assert tab.saved(accepted)["left_out"] == {
        name: left_out[name] for name in ("before", "num_messages", "summary", "stopped")
    }
    assert left_out["summary"] is not None, "it was there before something had to go"
    summary = tab.client.get(f"/api/summaries/{left_out['summary']}").json()
    assert summary["text"]
    assert left_out["num_messages"] >= 2
