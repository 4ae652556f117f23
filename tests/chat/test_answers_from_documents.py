"""Questions answered from documents: found, shown to the model, cited, and nobody else's."""

import json
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from inference import ChatTokenizer
from inference.builtin import MODEL_DIR
from tests.chat.reader import Frame, Reader, a_reader
from tests.chat.test_documents import a_collection, ready, upload
from tests.chat.test_token_branches import fork_of
from tests.sites import Site
from webapp.servers.postgres import Postgres

BUILTIN = "vitrine-small"
HANDBOOK = (
    "# Holidays\n\nEmployees get 28 days of holiday each year.\n\n"
    "# Office\n\nThe office opens at 8 in the morning. Lunch is served at noon in the canteen.\n"
)
PORT = (
    "In 2021 the harbour handled 4.2 million tonnes of cargo. The crane was built by Otto Brandt."
)


@pytest.fixture
def alice(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "alice")


@pytest.fixture
def bob(chat_site: Site) -> Iterator[Reader]:
    yield from a_reader(chat_site, "bob")


def bring(reader: Reader, collection: str, text: str, name: str) -> str:
    document = str(upload(reader.client, collection, text, name).json()["id"])
    ready(reader.client, document)
    return document


def ask(reader: Reader, text: str, **fields: Any) -> tuple[Frame, Frame]:
    """What was accepted, and the answer as it is saved."""
    accepted = reader.send(text, model=BUILTIN, **fields)
    reader.hear_end(accepted["run"])
    return accepted, reader.saved(accepted)


def prompts_of(site: Site, conversation: str) -> list[list[int]]:
    """Token ids, the first prompt first."""
    statement = """
        SELECT t.prompt_ids FROM chat_generationturn t JOIN chat_generation g ON g.id = t.generation_id
        WHERE g.conversation_id = %s ORDER BY t.id
    """
    with psycopg.connect(Postgres(site.data_dir).conninfo(user="postgres")) as connection:
        return [row[0] for row in connection.execute(statement, [conversation])]


def retrieval_of(reader: Reader, answer: Frame) -> dict[str, Any]:
    response = reader.client.get(f"/api/messages/{answer['id']}/retrieval")
    assert response.status_code == 200, response.text
    value: dict[str, Any] = response.json()
    return value


def test_an_answer_cites_the_passage_that_it_was_written_from(alice: Reader) -> None:
    collection = a_collection(alice.client)
    handbook = bring(alice, collection, HANDBOOK, "handbook.md")
    bring(alice, collection, PORT, "port.txt")
    sources = {"collections": [collection]}
    accepted, answer = ask(alice, "When does the office open?", sources=sources)
    (found,) = [e for e in alice.events(accepted["run"]) if e["kind"] == "found"]
    assert "candidates" not in found
    assert found["excerpts"] == answer["found"]["excerpts"]
    first = answer["found"]["excerpts"][0]
    assert (first["number"], first["document"], first["name"]) == (1, handbook, "handbook.md")
    assert answer["text"] == "The office opens at 8 in the morning [1]."
    shown = alice.client.get(f"/api/messages/{answer['id']}/excerpts").json()["excerpts"]
    assert "opens at 8" in shown[0]["text"]
    assert HANDBOOK[first["start"] : first["end"]] == shown[0]["text"]
    spans = alice.client.get(f"/api/messages/{answer['id']}/trace").json()["spans"]
    assert "retrieval" in [span["kind"] for span in spans]
    question = alice.conversation(accepted["conversation"]["id"])["messages"][0]
    assert question["sources"]["collections"] == [{"id": collection, "name": "Notes"}]


def test_the_meter_keeps_as_much_room_as_an_answer_from_them_takes_at_most(
    alice: Reader, bob: Reader
) -> None:
    collection = a_collection(alice.client)
    handbook = bring(alice, collection, HANDBOOK, "handbook.md")
    draft = {"text": "When does the office open?", "model": BUILTIN}

    def metered(reader: Reader, **sources: Any) -> Any:
        return reader.change("POST", "/api/meter", **draft, sources=sources)

    def looked_up(meter: Any) -> int:
        assert sum(one["tokens"] for one in meter["segments"]) == meter["prompt_tokens"]
        return sum(one["tokens"] for one in meter["segments"] if one["name"] == "looked_up")

    plain = alice.change("POST", "/api/meter", **draft).json()
    assert looked_up(plain) == 0
    of_one = metered(alice, documents=[handbook]).json()
    of_all = metered(alice, collections=[collection]).json()
    room = of_all["context_tokens"] - of_all["reserve_tokens"]
    assert len(HANDBOOK) / 2 < looked_up(of_one) <= looked_up(of_all) <= room // 2
    _, answer = ask(alice, draft["text"], sources={"documents": [handbook]})
    taken = answer["usage"]["prompt_tokens"] - plain["prompt_tokens"]
    assert 0 < taken <= looked_up(of_one)
    missing = metered(bob, documents=["0199a1b2-0000-7000-8000-000000000001"])
    theirs = metered(bob, documents=[handbook])
    assert (theirs.status_code, theirs.json()) == (404, missing.json())
    assert metered(alice, documents=["nonsense"]).status_code in (400, 422)
    assert metered(alice, documents=[handbook] * 21).status_code in (400, 422)


def test_the_debugger_tells_why_a_passage_was_shown_or_not(alice: Reader) -> None:
    collection = a_collection(alice.client)
    bring(alice, collection, HANDBOOK, "handbook.md")
    bring(alice, collection, PORT, "port.txt")
    sources = {"collections": [collection]}
    accepted, answer = ask(alice, "When does the office open?", sources=sources)
    told = retrieval_of(alice, answer)
    by_name = {one["name"]: one for one in told["candidates"]}
    assert by_name["handbook.md"]["dropped"] is None
    assert by_name["handbook.md"]["lexical_rank"] == by_name["handbook.md"]["vector_rank"] == 1
    assert by_name["port.txt"]["dropped"] == "threshold"
    assert "[1] handbook.md" in told["prompt"]
    assert "Otto" not in told["prompt"]
    # again, without it
    alice.say(
        {
            "type": "answer.regenerate",
            "client_id": f"again-{time.monotonic_ns()}",
            "answer": answer["id"],
            "without": [by_name["handbook.md"]["chunk"]],
        }
    )
    again = alice.hear_until(type="answer.accepted")
    alice.hear_end(again["run"])
    other = alice.saved({**again, "conversation": accepted["conversation"]})
    told = retrieval_of(alice, other)
    assert {one["name"]: one["dropped"] for one in told["candidates"]} == {
        "handbook.md": "unwanted",
        "port.txt": "threshold",
    }
    assert other["text"] == "That is not in the documents."


def test_what_nothing_answers_is_not_in_the_documents(alice: Reader) -> None:
    collection = a_collection(alice.client)
    bring(alice, collection, PORT, "port.txt")
    _, answer = ask(alice, "What does the director earn?", sources={"collections": [collection]})
    assert answer["found"]["excerpts"] == []
    assert answer["text"] == "That is not in the documents."


def test_a_small_document_is_shown_whole(alice: Reader) -> None:
    collection = a_collection(alice.client)
    handbook = bring(alice, collection, HANDBOOK, "handbook.md")
    _, answer = ask(alice, "When does the office open?", sources={"documents": [handbook]})
    assert answer["found"]["is_whole"]
    assert "".join(
        HANDBOOK[e["start"] : e["end"]] for e in answer["found"]["excerpts"]
    ).split() == (HANDBOOK.split())
    assert "opens at 8" in answer["text"]


def test_a_large_file_is_there_for_all_that_is_asked_of_it(alice: Reader) -> None:
    collection = a_collection(alice.client)
    filling = "\n\n".join(
        f"Paragraph {n} of the report says once more that nothing of importance came up." * 4
        for n in range(30)
    )
    document = bring(alice, collection, f"{filling}\n\n{PORT}\n\n{filling}", "report.txt")
    sources = {"documents": [document]}
    accepted, first = ask(alice, "Fasse zusammen", sources=sources)
    assert not first["found"]["is_whole"]
    beginning = first["found"]["excerpts"][0]
    assert (beginning["start"], beginning["is_sample"]) == (0, True)
    place = {"conversation": accepted["conversation"]["id"], "parent": first["id"]}
    draft = {"text": "Who built the crane?", "model": BUILTIN}
    metered = alice.change("POST", "/api/meter", **draft, **place).json()
    assert "looked_up" in {one["name"] for one in metered["segments"]}
    _, second = ask(alice, draft["text"], **place)
    shown = alice.client.get(f"/api/messages/{second['id']}/excerpts").json()["excerpts"]
    assert {one["document"] for one in shown} == {document}
    assert any("Otto Brandt" in one["text"] for one in shown)


def test_the_next_prompt_begins_with_the_one_before(alice: Reader, chat_site: Site) -> None:
    """What was found stays where it is, with its numbers; new excerpts have numbers of their own."""
    collection = a_collection(alice.client)
    bring(alice, collection, HANDBOOK, "handbook.md")
    bring(alice, collection, PORT, "port.txt")
    sources = {"collections": [collection]}
    accepted, first = ask(alice, "When does the office open?", sources=sources)
    place = {"conversation": accepted["conversation"]["id"], "parent": first["id"]}
    _, second = ask(alice, "Who built the crane?", sources=sources, **place)
    numbers = [[one["number"] for one in answer["found"]["excerpts"]] for answer in (first, second)]
    assert numbers[1][0] == numbers[0][-1] + 1
    before, after = prompts_of(chat_site, place["conversation"])
    assert after[: len(before)] == before
    assert "Otto Brandt" in second["text"]
    assert f"[{numbers[1][0]}]" in second["text"]


def test_what_is_no_longer_shared_is_gone_from_prompts_at_once(
    alice: Reader, bob: Reader, chat_site: Site
) -> None:
    collection = a_collection(alice.client)
    bring(alice, collection, "The secret word of the canary is xylophonist.", "secret.txt")
    accesses = f"/api/collections/{collection}/accesses"
    access = alice.client.post(accesses, json={"email": bob.email}).json()["id"]
    sources = {"collections": [collection]}
    accepted, answer = ask(bob, "What is the secret word of the canary?", sources=sources)
    assert "xylophonist" in answer["text"]
    alice.client.delete(f"{accesses}/{access}")
    told = retrieval_of(bob, answer)
    assert [one["text"] for one in told["candidates"] + told["excerpts"]] == [None, None]
    assert "xylophonist" not in json.dumps(told)
    bob.say({"type": "message.send", "client_id": "x1", "text": "again?", "sources": sources})
    assert bob.hear_until(type="error")["code"] == "not_found"
    # In the next prompt of the chat a note stands where it was.
    place = {"conversation": accepted["conversation"]["id"], "parent": answer["id"]}
    ask(bob, "And now?", **place)
    text = ChatTokenizer.load(MODEL_DIR).decode(prompts_of(chat_site, place["conversation"])[-1])
    assert "[1] secret.txt\n(This passage is not available any more.)" in text
    assert text.count("xylophonist") == 1, "in what was answered then, and nowhere else"


def test_headings_above_what_is_no_longer_shared_are_gone_with_it(
    alice: Reader, bob: Reader, chat_site: Site
) -> None:
    collection = a_collection(alice.client)
    filling = "\n\n".join(
        f"Paragraph {n} says nothing of importance to anybody." for n in range(60)
    )
    secret = f"# Project Xylophonist\n\n{filling}\n\nThe secret word of the canary is marimba.\n"
    bring(alice, collection, secret, "secret.md")
    accesses = f"/api/collections/{collection}/accesses"
    access = alice.client.post(accesses, json={"email": bob.email}).json()["id"]
    question = "What is the secret word of the canary?"
    accepted, answer = ask(bob, question, sources={"collections": [collection]})
    shown = bob.client.get(f"/api/messages/{answer['id']}/excerpts").json()["excerpts"]
    assert shown[0]["context"] == "Project Xylophonist"
    alice.client.delete(f"{accesses}/{access}")
    place = {"conversation": accepted["conversation"]["id"], "parent": answer["id"]}
    ask(bob, "And now?", **place)
    for told in (
        ChatTokenizer.load(MODEL_DIR).decode(prompts_of(chat_site, place["conversation"])[-1]),
        json.dumps(retrieval_of(bob, answer)),
        bob.client.get(f"/api/messages/{answer['id']}/excerpts").text,
        json.dumps(bob.conversation(place["conversation"])),
        bob.client.get(f"/api/conversations/{place['conversation']}/export").text,
    ):
        assert "Xylophonist" not in told


def test_nothing_is_written_anew_from_what_is_no_longer_shared(alice: Reader, bob: Reader) -> None:
    """The prompt of then holds it: who branches an answer at a token would have the model read it."""
    collection = a_collection(alice.client)
    bring(alice, collection, "The secret word of the canary is xylophonist.", "secret.txt")
    accesses = f"/api/collections/{collection}/accesses"
    access = alice.client.post(accesses, json={"email": bob.email}).json()["id"]
    question = "What is the secret word of the canary?"
    accepted, answer = ask(bob, question, sources={"collections": [collection]})
    place = {"conversation": accepted["conversation"]["id"], "parent": answer["id"]}
    _, second = ask(bob, "And now?", **place)
    looks = [f"/api/messages/{one['id']}" for one in (answer, second)]
    tokens = [bob.client.get(f"{look}/tokens").json()["turns"][0]["tokens"] for look in looks]
    alice.client.delete(f"{accesses}/{access}")
    for look, (first, *_) in zip(looks, tokens, strict=True):
        fork = {"token": 0, "choice": first["top"][-1]["id"], "client_id": f"fork {look}"}
        for response in (
            bob.change("POST", f"{look}/branch", **fork),
            bob.change("POST", f"{look}/replay"),
            bob.client.get(f"{look}/tokens"),
        ):
            assert response.status_code == 409, response.text
            assert "not available any more" in response.text


def test_a_branch_cites_what_its_prompt_holds(alice: Reader) -> None:
    """Looked for anew, its numbers would mean what is found now; and it would go on when what it has
    read may not be read any more."""
    collection = a_collection(alice.client)
    handbook = bring(alice, collection, HANDBOOK, "handbook.md")
    question = "When does the office open?"
    _, answer = ask(alice, question, sources={"collections": [collection]})
    assert answer["found"]["excerpts"]
    upload(alice.client, collection, "# Cranes\n\nCranes are birds.\n", "handbook.md")
    ready(alice.client, handbook)
    look = f"/api/messages/{answer['id']}"
    (turn,) = alice.client.get(f"{look}/tokens").json()["turns"]
    number, other, _ = fork_of(turn["tokens"])
    fork = {"token": number, "choice": other["id"], "client_id": f"fork {look}"}
    begun = alice.change("POST", f"{look}/branch", **fork).json()
    alice.follow(begun["run"])
    alice.hear_end(begun["run"])
    kinds = [event["kind"] for event in alice.events(begun["run"])]
    assert kinds.count("found") == 1
    shown = alice.client.get(f"/api/messages/{begun['answer']}/excerpts").json()["excerpts"]
    assert [one["version"] for one in shown] == [e["version"] for e in answer["found"]["excerpts"]]
    assert "opens at 8" in shown[0]["text"]


def test_a_question_that_says_little_is_looked_for_with_the_one_before(alice: Reader) -> None:
    collection = a_collection(alice.client)
    bring(alice, collection, HANDBOOK, "handbook.md")
    sources = {"collections": [collection]}
    accepted, first = ask(alice, "When does the office open?", sources=sources)
    place = {"conversation": accepted["conversation"]["id"], "parent": first["id"]}
    _, second = ask(alice, "Really so few?", sources=sources, **place)
    assert second["found"]["query"] == "When does the office open? Really so few?"
    assert second["found"]["excerpts"]


def test_who_has_no_right_picks_nothing(alice: Reader, bob: Reader) -> None:
    collection = a_collection(alice.client)
    document = bring(alice, collection, PORT, "port.txt")
    for sources in ({"collections": [collection]}, {"documents": [document]}):
        bob.say(
            {"type": "message.send", "client_id": "no", "text": "Who built it?", "sources": sources}
        )
        assert bob.hear_until(type="error")["code"] == "not_found"
    _, answer = ask(alice, "Who built the crane?", sources={"collections": [collection]})
    for path in ("excerpts", "retrieval"):
        assert bob.client.get(f"/api/messages/{answer['id']}/{path}").status_code == 404


@pytest.mark.parametrize(
    "sources",
    [
        "all",
        {"collections": "x"},
        {"collections": ["x"]},
        {"documents": [7]},
        {"documents": ["01a206fe-89d4-7ca0-9966-12d6fddb36d3"] * 99},
    ],
)
def test_sources_that_make_no_sense_are_refused(alice: Reader, sources: Any) -> None:
    frame = {"type": "message.send", "client_id": "bad", "text": "hello", "sources": sources}
    alice.say(frame)
    error = alice.hear_until(type="error")
    assert error["code"] in ("bad_frame", "not_found")
