"""What policies stop reaches nobody: by whatever door it comes, however its text is cut."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.chat.api_caller import Caller
from tests.chat.policies import PHRASE, add_policy, judged_site, plant_rule, set_policy
from tests.chat.reader import Reader
from tests.sites import Site, SiteMaker, email_of, post_form, wait_until
from tests.upstream_server import UpstreamServer, events, texts

STORY = f"It was a quiet day. Then came the {PHRASE} of the lake. Everybody went home."
BLOCKED = {"illicit": {"block": 0.9}}


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer, small_models: str) -> Iterator[Site]:
    models = f"far={server.url},{small_models}"
    with judged_site(make_site, models, VITRINE_DTYPE="float32", VITRINE_THREADS="1") as site:
        yield site


@pytest.fixture
def reader(site: Site, server: UpstreamServer) -> Iterator[Reader]:
    server.answers = [events(*texts("Nothing to see."))]
    server.asked.clear()
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


@pytest.fixture(scope="module")
def caller(site: Site) -> Caller:
    site.sign_up("programmer").close()
    return Caller(site, site.create_api_key(email_of("programmer")))


def cut(text: str, seed: int) -> list[str]:
    rng = random.Random(seed)
    places = sorted({0, len(text), *rng.sample(range(len(text)), rng.randint(0, len(text) - 1))})
    return [text[a:b] for a, b in pairwise(places)]


def rows(site: Site, sql: str, *values: Any) -> list[Any]:
    import psycopg

    own = f"host={site.data_dir}/sockets user=vitrine dbname=vitrine"
    with psycopg.connect(own) as connection:
        connection.execute("SET vitrine.scope = 'system'")
        return connection.execute(sql, values).fetchall()


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_planted_phrase_crosses_no_socket(
    site: Site, server: UpstreamServer, reader: Reader, seed: int
) -> None:
    set_policy(site, {"output": BLOCKED})
    server.answers = [events(*texts(*cut(STORY, seed)))]
    accepted = reader.send("Tell me a story.")
    end = reader.hear_end(accepted["run"])
    assert (end["kind"], end["stage"]) == ("refused", "output")
    assert reader.text(accepted["run"]).strip() == "It was a quiet day."
    assert "crimson" not in json.dumps(reader.frames)
    saved = reader.saved(accepted)
    assert saved["text"].strip() == "It was a quiet day."
    assert saved["status"] == "refused"


@pytest.mark.parametrize("seed", range(4))
def test_nor_a_stream_of_a_program(
    site: Site, server: UpstreamServer, caller: Caller, seed: int
) -> None:
    set_policy(site, {"output": BLOCKED})
    server.answers = [events(*texts(*cut(STORY, seed)))]
    body = {"model": "far", "messages": [{"role": "user", "content": "A story, please."}]}
    frames = caller.stream("/chat/completions", body)
    assert "".join(texts_told(frames)).strip() == "It was a quiet day."
    assert frames[-1][1] == "[DONE]"
    assert frames[-2][1]["choices"][0]["finish_reason"] == "content_filter"
    server.answers = [events(*texts(*cut(STORY, seed)))]
    whole = caller.post("/chat/completions", body).json()
    assert whole["choices"][0]["finish_reason"] == "content_filter"
    assert whole["choices"][0]["message"]["content"].strip() == "It was a quiet day."


def test_nor_wherever_it_is_cut(
    site: Site, server: UpstreamServer, reader: Reader, caller: Caller
) -> None:
    """Between any two of its characters, and between all of them."""
    set_policy(site, {"output": BLOCKED})
    start = STORY.index("crimson")
    places = range(start, start + len("crimson") + 1)
    for pieces in ([*STORY], *([STORY[:at], STORY[at:]] for at in places)):
        server.answers = [events(*texts(*pieces))]
        accepted = reader.send("Tell me a story.")
        reader.hear_end(accepted["run"])
        assert reader.text(accepted["run"]).strip() == "It was a quiet day."
        server.answers = [events(*texts(*pieces))]
        body = {"model": "far", "messages": [{"role": "user", "content": "A story, please."}]}
        told = "".join(texts_told(caller.stream("/chat/completions", body)))
        assert told.strip() == "It was a quiet day."
    assert "crimson" not in json.dumps(reader.frames)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages"])
@pytest.mark.parametrize("seed", range(2))
def test_nor_by_another_shape(
    site: Site, server: UpstreamServer, caller: Caller, path: str, is_stream: bool, seed: int
) -> None:
    set_policy(site, {"output": BLOCKED})
    server.answers = [events(*texts(*cut(STORY, seed)))]
    body = {"model": "far", **DOORS[path]}
    told = caller.stream(path, body) if is_stream else caller.post(path, body).json()
    said = "".join(texts_told(told))
    assert "It was a quiet day." in said
    assert "Then" not in said


def texts_told(value: Any) -> Iterator[str]:
    """What a body or its frames say, piece by piece."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from texts_told(one)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and name in ("text", "content", "delta", "arguments"):
                yield inner
            yield from texts_told(inner)


def test_what_was_shown_goes_where_the_policy_says_so(
    site: Site, server: UpstreamServer, reader: Reader, caller: Caller
) -> None:
    set_policy(site, {"output": BLOCKED, "partial_output": "remove"})
    server.answers = [events(*texts(STORY))]
    accepted = reader.send("Tell me a story.")
    assert reader.hear_end(accepted["run"])["removes"] is True
    assert reader.saved(accepted)["text"] == ""
    with reader.another_tab() as late:  # and nobody is told it afterwards
        late.follow(accepted["run"])
        assert late.hear_end(accepted["run"])["kind"] == "refused"
        assert "quiet" not in json.dumps(late.frames)
    assert "quiet" not in reader.client.get(f"/api/runs/{accepted['run']}/events").text
    sql = "SELECT payload->>'kind' FROM chat_generationevent WHERE generation_id = %s"
    assert rows(site, sql, accepted["run"]) == [("refused",)]
    body = {"model": "far", "messages": [{"role": "user", "content": "A story, please."}]}
    response = caller.post("/chat/completions", body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "content_filter")
    server.answers = [events(*texts(*cut(STORY, 2)))]
    frames = caller.stream("/responses", {"model": "far", "input": "A story, please."})
    name, last = frames[-1]
    assert (name, last["response"]["output"]) == ("response.failed", [])
    assert caller.get(f"/responses/{last['response']['id']}").json()["output"] == []


def test_secrets_are_taken_out_of_what_is_read_and_written(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    plant_rule(site, "secrets")
    try:
        redact = {"secrets": {"redact": 0.9}}
        set_policy(site, {"input": redact, "output": redact})
        server.answers = [events(*texts(*cut(STORY, 1)))]
        accepted = reader.send(f"My word is {PHRASE}, remember it.")
        assert reader.hear_end(accepted["run"])["kind"] == "finished"
        assert reader.text(accepted["run"]) == STORY.replace(PHRASE, f"[{'█' * 8}]")
        assert "heron" not in json.dumps([asked.body for asked in server.asked])
        assert reader.saved(accepted)["text"] == reader.text(accepted["run"])
    finally:
        plant_rule(site)


def test_a_key_is_not_kept_with_the_decision(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": {"secrets": {"block": 0.5}}})
    key = "sk-proj-9fKx82hsLqPz71mNvB4cTgYu3WeRd5aX"
    end = reader.hear_end(reader.send(f"My key is {key}, use it.")["run"])
    ((text,),) = rows(site, "SELECT text FROM moderation_decision WHERE id = %s", end["decision"])
    assert text == f"My key is [{'█' * 8}], use it."


# --- questions: every door ------------------------------------------------------------------------

MESSAGES = [{"role": "user", "content": f"Where is the {PHRASE}?"}]
DOORS: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": MESSAGES},
    "/responses": {"input": MESSAGES[0]["content"]},
    "/messages": {"messages": MESSAGES, "max_tokens": 20},
    "/completions": {"prompt": MESSAGES[0]["content"]},
}


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("model", ["far", "endless"])
def test_no_door_lets_a_question_in(
    site: Site, server: UpstreamServer, caller: Caller, path: str, model: str, is_stream: bool
) -> None:
    if (path, model) == ("/completions", "far"):
        pytest.skip("no texts go on at other servers")
    set_policy(site, {"input": BLOCKED})
    server.asked.clear()
    response = caller.post(path, {"model": model, "stream": is_stream, **DOORS[path]})
    assert response.status_code == 400, response.text
    assert "House rules" in response.text
    # The title of a chat before, in which it was let in, may be asked for by now.
    asked = [asked.body for asked in server.asked if not asked.asks_for_title]
    assert PHRASE not in json.dumps(asked)


NUL = [{"role": "user", "content": f"Where is the {PHRASE}?\0"}]
HALF = [
    {"role": "user", "content": "Look at the lake."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "look", "arguments": '{"at": "\\ud800"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "There is something."},
    {"role": "user", "content": f"Is that the {PHRASE} over there?"},
]


@pytest.mark.parametrize("messages", [NUL, HALF])
def test_nor_beside_what_is_no_character(
    site: Site, caller: Caller, messages: list[dict[str, Any]]
) -> None:
    """Half a character, which JSON within JSON can hold, and a NUL, which no row can."""
    set_policy(site, {"input": BLOCKED})
    sql = "SELECT count(*) FROM moderation_decision WHERE action = 'block'"
    ((before,),) = rows(site, sql)
    body = {"model": "endless", "max_tokens": 5, "messages": messages}
    response = caller.post("/chat/completions", body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == "content_filter"
    assert rows(site, sql) == [(before + 1,)]


def batched(caller: Caller, *questions: str) -> list[Any]:
    """What became of each, in a batch of them all: its line of the file of answers or of errors."""
    lines = [
        {
            "custom_id": str(number),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "far", "messages": [{"role": "user", "content": question}]},
        }
        for number, question in enumerate(questions)
    ]
    with httpx2.Client(headers={"Authorization": caller.headers["Authorization"]}) as client:
        files = {"file": ("b.jsonl", "\n".join(map(json.dumps, lines)).encode())}
        file = client.post(f"{caller.url}/files", data={"purpose": "batch"}, files=files).json()
    wanted = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    batch = caller.post("/batches", {"input_file_id": file["id"], **wanted}).json()

    def now() -> Any:
        return caller.get(f"/batches/{batch['id']}").json()

    wait_until(lambda: now()["status"] == "completed")
    ended = now()
    kept = [ended[name] for name in ("output_file_id", "error_file_id") if ended.get(name)]
    texts = [caller.get(f"/files/{one}/content").text for one in kept]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted(found, key=lambda line: int(line["custom_id"]))


def test_a_batch_is_judged_line_by_line(site: Site, server: UpstreamServer, caller: Caller) -> None:
    set_policy(site, {"input": BLOCKED})
    server.answers = [events(*texts("Fine."))]
    bad, good = batched(caller, MESSAGES[0]["content"], "Hello.")
    assert bad["response"]["status_code"] == 400
    assert bad["response"]["body"]["error"]["code"] == "content_filter"
    assert good["response"]["body"]["choices"][0]["message"]["content"] == "Fine."


def test_so_is_what_a_batch_is_answered(site: Site, server: UpstreamServer, caller: Caller) -> None:
    set_policy(site, {"output": BLOCKED})
    server.answers = [events(*texts(*cut(STORY, seed=3)))]
    for line in batched(caller, "Tell me a story.", "And another one."):
        (choice,) = line["response"]["body"]["choices"]
        assert choice["finish_reason"] == "content_filter"
        assert choice["message"]["content"].strip() == "It was a quiet day."


def test_regenerating_and_editing_are_asking(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {})
    accepted = reader.send(MESSAGES[0]["content"])
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    set_policy(site, {"input": BLOCKED})  # and no restart
    answer = accepted["answer"]["id"]
    reader.say({"type": "answer.regenerate", "client_id": "again", "answer": answer})
    again = reader.hear_until(type="answer.accepted", client_id="again")
    assert reader.hear_end(again["run"])["kind"] == "refused"
    conversation = accepted["conversation"]["id"]
    edited = reader.send(
        f"And the {PHRASE} now?", conversation=conversation, parent=None, client_id="edited"
    )
    assert reader.hear_end(edited["run"])["kind"] == "refused"
    assert not reader.saved(edited)["text"]


def test_a_blocked_question_is_not_in_the_way_of_the_next(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": BLOCKED})
    accepted = reader.send(MESSAGES[0]["content"])
    assert reader.hear_end(accepted["run"])["kind"] == "refused"
    server.asked.clear()
    behind = {"conversation": accepted["conversation"]["id"], "parent": accepted["answer"]["id"]}
    next_one = reader.send("And how are you?", **behind)
    assert reader.hear_end(next_one["run"])["kind"] == "finished"
    assert PHRASE not in json.dumps([asked.body for asked in server.asked])


def test_nor_is_an_answered_one_that_a_later_policy_blocks(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {})
    old = reader.send(MESSAGES[0]["content"])
    assert reader.hear_end(old["run"])["kind"] == "finished"
    # Its title is asked by the old policy, too.
    wait_until(lambda: any("short title" in json.dumps(one.body) for one in server.asked))
    set_policy(site, {"input": BLOCKED, "strikes": {"illicit": 2}})
    server.asked.clear()
    parent = old["answer"]["id"]
    for number in range(2):
        behind = {"conversation": old["conversation"]["id"], "parent": parent}
        accepted = reader.send(f"And how are you, {number}?", **behind)
        assert reader.hear_end(accepted["run"])["kind"] == "finished"
        assert reader.saved(accepted)["left_out"]["stopped"] == [old["message"]["id"]]
        parent = accepted["answer"]["id"]
    assert PHRASE not in json.dumps([asked.body for asked in server.asked])
    sql = (
        "SELECT d.action, s.points FROM moderation_decision d LEFT JOIN moderation_strike s"
        " ON s.decision_id = d.id WHERE d.message_id = %s"
    )
    assert rows(site, sql, old["message"]["id"]) == [("block", None)]


def test_its_author_is_asked_and_may_send_it_all_the_same(
    site: Site, server: UpstreamServer, reader: Reader, caller: Caller
) -> None:
    set_policy(site, {"input": {"illicit": {"ask": 0.9}}})
    server.asked.clear()
    accepted = reader.send(MESSAGES[0]["content"])
    end = reader.hear_end(accepted["run"])
    assert (end["kind"], end["code"]) == ("refused", "confirmation_needed")
    assert PHRASE not in json.dumps([asked.body for asked in server.asked])
    answer = accepted["answer"]["id"]
    frame = {"type": "answer.regenerate", "client_id": "sure", "answer": answer, "confirms": True}
    reader.say(frame)
    again = reader.hear_until(type="answer.accepted", client_id="sure")
    assert reader.hear_end(again["run"])["kind"] == "finished"
    # What was confirmed once is not asked again with each later question, but what is new is.
    chat = accepted["conversation"]["id"]
    behind = {"conversation": chat, "parent": again["answer"]["id"]}
    harmless = reader.send("And how are you?", **behind)
    assert reader.hear_end(harmless["run"])["kind"] == "finished"
    behind["parent"] = harmless["answer"]["id"]
    one_more = reader.send(f"Tell me more of the {PHRASE}.", **behind)
    assert reader.hear_end(one_more["run"])["code"] == "confirmation_needed"
    # Where nobody can be asked, it is blocked.
    response = caller.post("/chat/completions", {"model": "far", "messages": MESSAGES})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "content_filter")


def test_its_author_is_asked_once_about_instructions(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": {"illicit": {"ask": 0.9}}})
    accepted = reader.send("How are you?", system_prompt=f"Speak of the {PHRASE}.")
    end = reader.hear_end(accepted["run"])
    assert end["code"] == "confirmation_needed"
    assert "instructions of this chat" in end["message"]
    answer = accepted["answer"]["id"]
    frame = {"type": "answer.regenerate", "client_id": "yes", "answer": answer, "confirms": True}
    reader.say(frame)
    again = reader.hear_until(type="answer.accepted", client_id="yes")
    assert reader.hear_end(again["run"])["kind"] == "finished"
    chat = accepted["conversation"]["id"]
    next_one = reader.send("And now?", conversation=chat, parent=again["answer"]["id"])
    assert reader.hear_end(next_one["run"])["kind"] == "finished"


def test_what_is_remembered_is_judged_in_each_chat_that_starts_with_it(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": {"illicit": {"ask": 0.9}}})
    made = reader.change("POST", "/api/memories", text=f"I like the {PHRASE}.")
    assert made.status_code == 201, made.text
    end = reader.hear_end(reader.send("How are you?")["run"])
    assert end["code"] == "confirmation_needed"
    assert "instructions of this chat" in end["message"]
    assert reader.change("DELETE", "/api/memories").json() == {"deleted": 1}
    assert reader.hear_end(reader.send("How are you?")["run"])["kind"] == "finished"


def test_a_temporary_chat_is_judged_and_leaves_no_text(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": BLOCKED})
    count = "SELECT count(*) FROM moderation_decision WHERE source = 'temporary'"
    before = rows(site, count)[0][0]
    said = [{"role": "user", "parts": [{"type": "text", "text": MESSAGES[0]["content"]}]}]
    reader.say({"type": "temporary.send", "client_id": "gone", "messages": said})
    accepted = reader.hear_until(type="temporary.accepted", client_id="gone")
    assert reader.hear_end(accepted["run"])["kind"] == "refused"
    sql = "SELECT text, run_id, source FROM moderation_decision ORDER BY created_at DESC LIMIT 1"
    assert rows(site, sql) == [("", "", "temporary")]
    assert rows(site, count)[0][0] == before + 1


def test_of_a_temporary_chat_what_was_answered_is_left_out_as_well(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": BLOCKED})
    texts_of = (MESSAGES[0]["content"], "In the reeds.", "And now?")
    ids = [str(uuid4()) for _ in texts_of]
    roles = ("user", "assistant", "user")
    said = [
        {"id": id_, "role": role, "parts": [{"type": "text", "text": text}]}
        for id_, role, text in zip(ids, roles, texts_of, strict=True)
    ]
    reader.say({"type": "temporary.send", "client_id": "later", "messages": said})
    accepted = reader.hear_until(type="temporary.accepted", client_id="later")
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    (told,) = [one for one in reader.events(accepted["run"]) if one["kind"] == "left_out"]
    assert told["stopped"] == ids[:1]
    assert PHRASE not in json.dumps([asked.body for asked in server.asked])


def test_a_title_is_judged_too(site: Site, server: UpstreamServer, reader: Reader) -> None:
    set_policy(site, {"output": BLOCKED})
    server.answers = [events(*texts("A fine answer.")), events(*texts(f"The {PHRASE}"))]
    accepted = reader.send("Give it a name.")
    reader.hear_end(accepted["run"])
    wait_until(lambda: rows(site, "SELECT 1 FROM moderation_decision WHERE source = 'title'"))
    path = f"/api/conversations/{accepted['conversation']['id']}"
    assert "heron" not in reader.client.get(path).text


# --- who is judged by what ------------------------------------------------------------------------


def test_of_policies_the_first_that_fits_decides(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": BLOCKED}, tiers=["enterprise"])
    add_policy(site, {}, name="Others", order=2)

    def asked() -> str:
        accepted = reader.send(MESSAGES[0]["content"])
        kind: str = reader.hear_end(accepted["run"])["kind"]
        return kind

    assert asked() == "finished"
    site.execute("UPDATE webapp_user SET tier_id = 'enterprise' WHERE email = %s", reader.email)
    assert asked() == "refused"


def test_a_dry_run_notes_what_it_would_have_done(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": BLOCKED}, is_dry_run=True, name="On trial")
    accepted = reader.send(MESSAGES[0]["content"])
    assert reader.hear_end(accepted["run"])["kind"] == "finished"
    sql = (  # the chat's title is judged as well, and may be first
        "SELECT action, is_dry_run, text FROM moderation_decision"
        " WHERE policy_name = 'On trial' AND source = 'chat'"
    )
    wait_until(lambda: bool(rows(site, sql)))
    assert rows(site, sql) == [("block", True, "")]


def test_a_blocked_question_counts_against_its_author(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": BLOCKED, "strikes": {"illicit": 2}})
    accepted = reader.send(MESSAGES[0]["content"])
    end = reader.hear_end(accepted["run"])
    sql = (
        "SELECT s.points, d.text, d.action FROM moderation_strike s"
        " JOIN moderation_decision d ON d.id = s.decision_id WHERE d.id = %s"
    )
    assert rows(site, sql, end["decision"]) == [(2.0, MESSAGES[0]["content"], "block")]


def test_one_text_is_one_strike(site: Site, caller: Caller) -> None:
    set_policy(site, {"input": BLOCKED, "strikes": {"illicit": 0.5}})
    messages = [{"role": "user", "content": f"Five times the {PHRASE}."}]
    body = {"model": "far", "messages": messages, "n": 5}
    assert caller.post("/chat/completions", body).status_code == 400
    assert caller.post("/chat/completions", body).status_code == 400
    sql = (
        "SELECT count(*) FROM moderation_strike s JOIN moderation_decision d"
        " ON d.id = s.decision_id WHERE d.text = %s"
    )
    assert rows(site, sql, messages[0]["content"]) == [(1,)]


def test_what_a_reviewer_found_wrongly_stopped_goes_through(
    site: Site, server: UpstreamServer, reader: Reader, caller: Caller
) -> None:
    set_policy(site, {"input": BLOCKED, "strikes": {"illicit": 0.1}})
    text = f"What does the {PHRASE} eat?"
    end = reader.hear_end(reader.send(text)["run"])
    assert end["kind"] == "refused"
    with closing(site.set_up()) as console:
        path = f"/admin/moderation/decision/{end['decision']}/change/"
        response = post_form(console, path, {"verdict": "overturn", "notes": "A bird."})
        assert response.status_code == 302, response.text
    assert reader.hear_end(reader.send(text)["run"])["kind"] == "finished"
    assert reader.hear_end(reader.send(f"{text} And drink?")["run"])["kind"] == "refused"
    body = {"model": "far", "messages": [{"role": "user", "content": text}]}
    assert caller.post("/chat/completions", body).status_code == 400, "of another person"
    sql = (
        "SELECT s.lifted_at IS NULL FROM moderation_strike s JOIN moderation_decision d"
        " ON d.id = s.decision_id WHERE d.text = %s AND d.owner_id ="
        " (SELECT id FROM webapp_user WHERE email = %s)"
    )
    assert rows(site, sql, text, reader.email) == [(False,)]


def test_who_is_stopped_too_often_waits(site: Site, server: UpstreamServer, reader: Reader) -> None:
    set_policy(site, {"input": BLOCKED, "strikes": {"illicit": 2}})

    def asked(text: str) -> dict[str, Any]:
        return reader.hear_end(reader.send(text)["run"])

    bad = MESSAGES[0]["content"]
    assert [asked(f"{bad} {n}")["kind"] for n in range(2)] == ["refused", "refused"]
    end = asked("And how are you?")
    assert (end["kind"], end["code"]) == ("failed", "cooling_down")
    assert 60 < end["retry_after_s"] <= 60 * 60
    site.execute("UPDATE moderation_strike SET lifted_at = now()")
    assert asked("And how are you?")["kind"] == "finished"


def test_the_trace_tells_what_was_judged(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    set_policy(site, {"input": {"illicit": {"note": 0.9}}})
    accepted = reader.send(MESSAGES[0]["content"])
    reader.hear_end(accepted["run"])
    answer = accepted["answer"]["id"]
    spans = reader.client.get(f"/api/messages/{answer}/trace").json()["spans"]
    (span,) = [span for span in spans if span["kind"] == "moderation"]
    assert span["facts"]["action"] == "note"
    assert span["facts"]["categories"] == ["illicit"]
