"""Every door at which a model is asked something is known, and each is tried with what a policy stops.

The doors come from the routes, those of pages and forms among them, and from the socket's frames: a new
one fails here until somebody has said whether a model writes behind it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from chat import anthropic_api, openai_api, rest
from tests.chat.policies import PHRASE, judged_site, plant_rule, set_policy
from tests.chat.reader import Reader
from tests.routes import addresses
from tests.sites import ROOT, Site, SiteMaker, wait_until
from tests.upstream_server import UpstreamServer, events, texts

QUESTION = f"Where is the {PHRASE}?"
BLOCKED = {"input": {"illicit": {"block": 0.9}}}

# Behind these a model writes; below each is tried, but for those of test_screening.py.
WRITTEN_BEHIND = {
    "v1 POST /chat/completions", "v1 POST /completions", "v1 POST /responses", "v1 POST /messages",
    "v1 POST /batches",
    "api POST /messages", "api POST /messages/{message_id}/regenerate",
    "api POST /messages/{message_id}/continue", "api POST /messages/{message_id}/branch",
    "api POST /schedules/{schedule_id}/send",
    "page settings/schedules/<uuid:schedule_id>/send", "a schedule's time",
    "socket message.send", "socket answer.regenerate", "socket answer.continue",
    "socket temporary.send",
}  # fmt: skip
IN_TEST_SCREENING = {one for one in WRITTEN_BEHIND if one.startswith("v1 ")} | {
    "socket message.send", "socket answer.regenerate", "socket temporary.send",
}  # fmt: skip
# Behind these no model writes, or (replay) only what was shown before is written again.
NOT_WRITTEN_BEHIND = {
    "api POST /models/load", "api POST /shares", "api POST /meter",
    "api POST /messages/{message_id}/replay",
    "api POST /imports", "api POST /imports/{import_id}/start",
    "api PATCH /conversations", "api PATCH /conversations/{conversation_id}",
    "api POST /folders", "api PATCH /folders/{folder_id}", "api PATCH /personalisation",
    "api POST /assistants", "api PATCH /assistants/{assistant_id}",
    # A chat that starts with it is judged with it, as with instructions (test_memories.py).
    "api POST /memories", "api PUT /memories/{memory_id}",
    # It is judged whenever it is sent.
    "api POST /schedules", "api PATCH /schedules/{schedule_id}",
    "api POST /prompts", "api PATCH /prompts/{prompt_id}",
    "api PATCH /conversations/{conversation_id}/setup", "api PUT /messages/{message_id}/pin",
    "api PUT /messages/{message_id}/feedback", "api POST /excerpts",
    "v1 POST /responses/{response_id}/cancel", "v1 POST /responses/input_tokens",
    "api POST /collections", "api PATCH /collections/{collection_id}",
    "api POST /collections/{collection_id}/accesses", "api POST /documents/search",
    "api POST /collections/{collection_id}/documents",
    "api POST /collections/{collection_id}/links", "api POST /documents/attach",
    "api PATCH /documents/{document_id}", "api POST /documents/{document_id}/versions",
    "api POST /documents/{document_id}/refresh", "api POST /documents/{document_id}/retry",
    "api POST /temporary/keep", "api POST /messages/{message_id}/choose",
    "api POST /messages/{message_id}/edit",
    "api POST /conversations/{conversation_id}/messages/restore",
    "api POST /messages/{message_id}/branch-off",
    "api POST /moderation/decisions/{decision_id}/appeal",
    "api POST /runs/{run_id}/stop", "api POST /runs/{run_id}/calls/{call_id}",
    "api POST /auth/token", "api POST /auth/refresh", "api POST /auth/revoke",
    "api POST /keys", "api PATCH /keys/{key_id}", "api POST /keys/{key_id}/rotate",
    "v1 POST /embeddings", "v1 POST /moderations", "v1 POST /tokenize",
    # What somebody has said comes back to them, and to nobody else.
    "v1 POST /audio/transcriptions", "v1 POST /audio/translations", "api POST /transcriptions",
    # A text is spoken as it is; it is judged all the same (test_openai_speech.py).
    "v1 POST /audio/speech", "api POST /speech",
    # Both what is asked and what the server has made of it are judged (test_openai_images.py).
    "v1 POST /images/generations", "v1 POST /images/edits",
    "v1 POST /messages/count_tokens", "v1 POST /files", "v1 POST /batches/{batch_id}/cancel",
    "v1 POST /vector_stores", "v1 POST /vector_stores/{vector_store_id}",
    "v1 POST /vector_stores/{vector_store_id}/search",
    "v1 POST /vector_stores/{vector_store_id}/files",
    "v1 POST /vector_stores/{vector_store_id}/files/{file_id}",
    "v1 POST /vector_stores/{vector_store_id}/file_batches",
    "v1 POST /vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
    "socket run.follow", "socket run.unfollow", "socket run.stop", "socket run.decide",
    "socket run.ack", "socket ping",
    "page ", "page c/<uuid:conversation_id>", "page c/<uuid:conversation_id>/print",
    "page s/<str:token>", "page s/<str:token>/continue",
    "page s/<str:token>/pictures/<uuid:picture_id>",
    "page documents/", "page documents/<uuid:document_id>",
    "page documents/collections/<uuid:collection_id>",
    "page settings/", "page settings/api", "page settings/assistants",
    "page settings/assistants/<uuid:assistant_id>", "page settings/assistants/new",
    "page settings/delete-account", "page settings/export", "page settings/keys",
    "page settings/keys/<int:key_id>", "page settings/keys/<int:key_id>/revoke",
    "page settings/keys/<int:key_id>/rotate", "page settings/keys/new",
    "page settings/language", "page settings/moderation", "page settings/name",
    "page settings/memory", "page settings/personalisation", "page settings/prompts",
    "page settings/prompts/<uuid:prompt_id>", "page settings/prompts/new",
    "page settings/schedules", "page settings/schedules/new",
    "page settings/schedules/<uuid:schedule_id>",
    "page settings/sessions", "page settings/usage",
    "page sandbox/diagram", "page sandbox/image", "page sandbox/preview",
    "page setup/<str:token>",
    "page healthz", "page readyz", "page metrics", "page offline",
    "page manifest.webmanifest", "page service-worker.js",
}  # fmt: skip
# Of libraries, or of accounts alone: no module of theirs asks (test_nobody_else_asks_a_model).
ELSEWHERE = ("accounts/", "admin/", "settings/security/", "scim/", "api/", "v1/")
MISSING = re.compile(r"/images/variations")  # a 501 behind each (test_openai_missing.py)


def doors() -> Iterator[str]:
    import_module("webapp.urls")  # which adds routes of its own
    for name, api in (("api", rest.api), ("v1", openai_api.api), ("v1", anthropic_api.api)):
        for prefix, router in api._routers:
            for path, view in router.path_operations.items():
                for operation in view.operations:
                    for method in operation.methods:
                        is_missing = operation.view_func.__module__ == "chat.openai_missing"
                        is_missing = is_missing or MISSING.search(path)
                        if method in ("POST", "PUT", "PATCH") and not is_missing:
                            yield f"{name} {method} {prefix}{path}"
    frames = (ROOT / "chat" / "frames.py").read_text()
    for kind in re.findall(r'case "([a-z]+(?:\.[a-z]+)?)":', frames):
        yield f"socket {kind}"
    for address in addresses():
        if not (route := address.removeprefix("/")).startswith(ELSEWHERE):
            yield f"page {route}"
    yield "a schedule's time"  # webapp/chores.py


def test_every_door_is_known() -> None:
    assert set(doors()) == WRITTEN_BEHIND | NOT_WRITTEN_BEHIND
    assert not WRITTEN_BEHIND & NOT_WRITTEN_BEHIND


def test_nobody_else_asks_a_model() -> None:
    """What a model writes comes from these modules: the turns of answer(), raw_text's events, which go
    through the same screens, and the two that write again what was shown."""
    asking = {
        path.stem
        for folder in ("chat", "retrieval", "webapp")
        for path in Path(ROOT / folder).rglob("*.py")
        if re.search(r"engine\(\)\.(generate|chat)\(", path.read_text())
    }
    assert asking == {"engine_turn", "upstream_turn", "raw_text", "replay", "likelihoods"}
    turning = {
        path.stem
        for path in (ROOT / "chat").glob("*.py")
        if re.search(r"\b(EngineTurn|UpstreamTurn)\(", path.read_text())
    }
    assert turning == {"orchestrator", "engine_turn", "upstream_turn"}


# --- the rest of the doors, tried -----------------------------------------------------------------


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer, small_models: str) -> Iterator[Site]:
    models = f"far={server.url}?continue=prefix,{small_models}"
    with judged_site(make_site, models, VITRINE_DTYPE="float32", VITRINE_THREADS="1") as site:
        yield site


@pytest.fixture
def reader(site: Site, server: UpstreamServer) -> Iterator[Reader]:
    reader = Reader.signed_up(site, "alice")
    with closing(reader.client), reader:
        yield reader


def cut_answer(
    site: Site,
    server: UpstreamServer,
    reader: Reader,
    model: str = "far",
    question: str = QUESTION,
    policy: dict[str, Any] = BLOCKED,
) -> Any:
    """One that was let through, and stopped by its reader; then another policy is in force."""
    set_policy(site, {})
    slow = texts(*(f"word{n} " for n in range(200)))
    server.answers = [events(*slow, pause_s=0.05)]
    accepted = reader.send(question, model=model)
    reader.hear_text(accepted["run"], 10)
    reader.say({"type": "run.stop", "run": accepted["run"], "chars": None})
    assert reader.hear_end(accepted["run"])["kind"] == "stopped"
    set_policy(site, policy)
    return accepted


def _send(site: Site, server: UpstreamServer, reader: Reader) -> str:
    set_policy(site, BLOCKED)
    return _posted(reader, "messages", text=QUESTION)


def _regenerate(site: Site, server: UpstreamServer, reader: Reader) -> str:
    answer = cut_answer(site, server, reader)["answer"]["id"]
    return _posted(reader, f"messages/{answer}/regenerate")


def _continue(site: Site, server: UpstreamServer, reader: Reader) -> str:
    answer = cut_answer(site, server, reader)["answer"]["id"]
    return _posted(reader, f"messages/{answer}/continue")


def _branch(site: Site, server: UpstreamServer, reader: Reader) -> str:
    answer = cut_answer(site, server, reader, model="endless")["answer"]["id"]
    return _posted(reader, f"messages/{answer}/branch", token=1, choice=300, client_id="fork")


def _continue_on_socket(site: Site, server: UpstreamServer, reader: Reader) -> str:
    answer = cut_answer(site, server, reader)["answer"]["id"]
    return _asked_again(reader, "answer.continue", answer)


def _asked_again(reader: Reader, frame: str, answer: str) -> str:
    """Over the socket."""
    reader.say({"type": frame, "client_id": "again", "answer": answer})
    run: str = reader.hear_until(type="answer.accepted", client_id="again")["run"]
    return run


def _posted(reader: Reader, path: str, **body: Any) -> str:
    response = reader.change("POST", f"/api/{path}", **body)
    assert response.status_code in (200, 201), response.text
    run: str = response.json()["run"]
    reader.follow(run)
    return run


def _schedule(reader: Reader) -> str:
    rhythm = {"repeats": "daily", "at": "08:00", "zone": "UTC", "model": "far"}
    made = reader.change("POST", "/api/schedules", name="News", text=QUESTION, **rhythm)
    assert made.status_code == 201, made.text
    id_: str = made.json()["id"]
    return id_


def _schedule_sent(site: Site, server: UpstreamServer, reader: Reader) -> str:
    set_policy(site, BLOCKED)
    return _posted(reader, f"schedules/{_schedule(reader)}/send")


def _schedule_sent_on_page(site: Site, server: UpstreamServer, reader: Reader) -> str:
    set_policy(site, BLOCKED)
    token = reader.client.cookies.get("vitrine_csrf") or ""
    path = f"/settings/schedules/{_schedule(reader)}/send"
    sent = reader.client.post(path, data={"csrfmiddlewaretoken": token})
    assert sent.status_code == 302
    return _run_in(site, reader, sent.headers["Location"].removeprefix("/c/"))


def _schedule_due(site: Site, server: UpstreamServer, reader: Reader) -> str:
    set_policy(site, BLOCKED)
    schedule = _schedule(reader)
    site.execute("UPDATE chat_schedule SET next_at = now() WHERE id = %s", schedule)

    def chat() -> str | None:
        found: str | None = reader.client.get(f"/api/schedules/{schedule}").json()["conversation"]
        return found

    return _run_in(site, reader, wait_until(chat, what="the chat of the schedule"))


def _run_in(site: Site, reader: Reader, chat: str) -> str:
    """Of its only answer, which may have ended."""
    with site.connection() as connection:
        rows = "SELECT id FROM chat_generation WHERE conversation_id = %s"
        [(run,)] = connection.execute(rows, [chat]).fetchall()
    reader.follow(str(run))
    return str(run)


TRIED: dict[str, Callable[[Site, UpstreamServer, Reader], str]] = {
    "api POST /messages": _send,
    "api POST /messages/{message_id}/regenerate": _regenerate,
    "api POST /messages/{message_id}/continue": _continue,
    "api POST /messages/{message_id}/branch": _branch,
    "socket answer.continue": _continue_on_socket,
    "api POST /schedules/{schedule_id}/send": _schedule_sent,
    "page settings/schedules/<uuid:schedule_id>/send": _schedule_sent_on_page,
    "a schedule's time": _schedule_due,
}


def test_each_is_tried() -> None:
    assert TRIED.keys() | IN_TEST_SCREENING == WRITTEN_BEHIND


@pytest.mark.parametrize("door", TRIED)
def test_what_is_stopped_is_stopped_here_too(
    site: Site, server: UpstreamServer, reader: Reader, door: str
) -> None:
    run = TRIED[door](site, server, reader)
    end = reader.hear_end(run)
    assert (end["kind"], end["stage"], end["code"]) == ("refused", "input", "content_filter")


# --- what is written behind them ------------------------------------------------------------------

SAID = "It was a quiet day."
STORY = f"{SAID} Then came the {PHRASE} of the lake. Everybody went home."
OUTPUT = {"output": {"illicit": {"block": 0.9}}}


def _begun(site: Site, server: UpstreamServer, reader: Reader) -> str:
    """A harmless answer, behind which the server tells the story."""
    accepted = cut_answer(site, server, reader, question="Tell me a story.", policy=OUTPUT)
    server.answers = [events(*texts(*STORY))]
    answer: str = accepted["answer"]["id"]
    return answer


def _regenerated(site: Site, server: UpstreamServer, reader: Reader) -> str:
    return _posted(reader, f"messages/{_begun(site, server, reader)}/regenerate")


def _regenerated_on_socket(site: Site, server: UpstreamServer, reader: Reader) -> str:
    return _asked_again(reader, "answer.regenerate", _begun(site, server, reader))


def _posted_anew(site: Site, server: UpstreamServer, reader: Reader) -> str:
    set_policy(site, OUTPUT)
    server.answers = [events(*texts(*STORY))]
    return _posted(reader, "messages", text="Tell me a story.")


def _temporary(site: Site, server: UpstreamServer, reader: Reader) -> str:
    set_policy(site, OUTPUT)
    server.answers = [events(*texts(*STORY))]
    question = {"role": "user", "parts": [{"type": "text", "text": "Tell me a story."}]}
    frame = {"type": "temporary.send", "client_id": "once", "model": "far"}
    reader.say({**frame, "messages": [question]})
    run: str = reader.hear_until(type="temporary.accepted", client_id="once")["run"]
    return run


def _continued(site: Site, server: UpstreamServer, reader: Reader) -> str:
    return _posted(reader, f"messages/{_begun(site, server, reader)}/continue")


def _continued_on_socket(site: Site, server: UpstreamServer, reader: Reader) -> str:
    return _asked_again(reader, "answer.continue", _begun(site, server, reader))


@pytest.mark.parametrize(
    "ask",
    [
        _regenerated,
        _regenerated_on_socket,
        _continued,
        _continued_on_socket,
        _posted_anew,
        _temporary,
    ],
)
def test_what_is_written_is_stopped_here_too(
    site: Site,
    server: UpstreamServer,
    reader: Reader,
    ask: Callable[[Site, UpstreamServer, Reader], str],
) -> None:
    run = ask(site, server, reader)
    end = reader.hear_end(run)
    assert (end["kind"], end["stage"]) == ("refused", "output")
    text = reader.text(run).strip()
    assert text.endswith(SAID)
    assert PHRASE.split()[0] not in text


def test_what_is_written_behind_a_token_is_stopped_here_too(
    site: Site, server: UpstreamServer, reader: Reader
) -> None:
    """Our own model says the same again behind the same token; what it says is what is planted."""
    answer = cut_answer(site, server, reader, model="endless", policy={})["answer"]["id"]
    fork = {"token": 1, "choice": 300}
    run = _posted(reader, f"messages/{answer}/branch", **fork, client_id="told")
    reader.hear_text(run, 200)
    reader.say({"type": "run.stop", "run": run, "chars": None})
    reader.hear_end(run)
    said = reader.text(run)[:200]
    word = max(re.findall(r"[A-Za-z]+", said[100:]), key=len)
    before = said[: said.index(word)]
    plant_rule(site, pattern=f"{word}")
    set_policy(site, OUTPUT)
    try:
        run = _posted(reader, f"messages/{answer}/branch", **fork, client_id="stopped")
        end = reader.hear_end(run)
    finally:
        plant_rule(site)
    assert (end["kind"], end["stage"]) == ("refused", "output")
    assert word not in reader.text(run)
    assert before.startswith(reader.text(run).rstrip())
