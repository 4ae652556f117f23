"""An answer looked at again: replayed to the token, and rated token by token."""

import json
from math import exp
from string import whitespace
from typing import TYPE_CHECKING, Any

import httpx2
import psycopg
import pytest
from django.contrib.auth import get_user_model

from chat.engine import engine
from chat.models import Conversation, Generation, GenerationTurn, Message
from chat.replay import replay
from chat.rights import Rights
from inference import BUILTIN
from tests.chat.meanings import Loop
from tests.chat.reader import Frame, Reader
from tests.sites import Site
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User


def replayed(reader: Reader, accepted: Frame) -> Any:
    """The last event of a replay, or the refusal."""
    response = reader.change("POST", f"/api/messages/{accepted['answer']['id']}/replay")
    if response.status_code != 200:
        return response.json()["error"]
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert all(event["kind"] == "progress" for event in events[:-1])
    counts = [event["tokens"] for event in events[:-1]]
    assert counts == sorted(counts)
    return events[-1]


def rated(reader: Reader, accepted: Frame) -> Any:
    return reader.client.get(f"/api/messages/{accepted['answer']['id']}/tokens")


@pytest.fixture
def answered(alices_tab: Reader) -> Frame:
    """With some words: a model of random weights may end before the first."""
    for _ in range(9):
        accepted = alices_tab.send("Say what you like", model="short")
        end = alices_tab.hear_end(accepted["run"])
        assert end["kind"] == "finished", end
        if alices_tab.text(accepted["run"]) and end["usage"]["completion_tokens"] > 8:
            return accepted
    raise AssertionError("nine short answers")


def test_an_answer_comes_again_to_the_token(alices_tab: Reader, answered: Frame) -> None:
    usage = alices_tab.saved(answered)["usage"]
    result = replayed(alices_tab, answered)
    assert (result["kind"], result["tokens"]) == ("same", usage["completion_tokens"])
    before = alices_tab.conversation(answered["conversation"]["id"])
    replayed(alices_tab, answered)
    assert alices_tab.conversation(answered["conversation"]["id"]) == before, "nothing stays"


def test_an_answer_with_tools_comes_again(alices_tab: Reader) -> None:
    accepted = alices_tab.send("What is 17 * 23?", model="vitrine-small")
    alices_tab.hear_end(accepted["run"])
    assert replayed(alices_tab, accepted)["kind"] == "same"


def test_a_stopped_answer_comes_again_as_far_as_it_was_written(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Long, please")
    alices_tab.hear_events(accepted["run"], 4)
    alices_tab.say({"type": "run.stop", "run": accepted["run"], "chars": None})
    end = alices_tab.hear_end(accepted["run"])
    result = replayed(alices_tab, accepted)
    assert result["kind"] == "same", result
    assert 0 < result["tokens"] <= end["usage"]["completion_tokens"]


def test_a_difference_is_told_by_token_and_text(
    alices_tab: Reader, answered: Frame, database: psycopg.Connection[Any]
) -> None:
    row = [answered["run"]]
    database.execute(
        "UPDATE chat_generationturn SET output_ids[6] = output_ids[6] + 1 WHERE generation_id = %s",
        row,
    )
    result = replayed(alices_tab, answered)
    assert (result["kind"], result["turn"], result["token"]) == ("differs", 0, 5)
    assert None not in (result["was"], result["now"])
    database.execute(
        "UPDATE chat_generationturn SET output_ids = output_ids[1:4] WHERE generation_id = %s", row
    )
    result = replayed(alices_tab, answered)
    assert (result["kind"], result["token"], result["was"]) == ("differs", 4, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model = 'gone'", "no longer here"),
        ("model_revision = 'another'", "have changed"),
    ],
)
def test_what_would_prove_nothing_is_refused(
    alices_tab: Reader,
    answered: Frame,
    database: psycopg.Connection[Any],
    change: str,
    words: str,
) -> None:
    query = f"UPDATE chat_generation SET {change} WHERE id = %s"
    database.execute(query, [answered["run"]])  # type: ignore[arg-type]
    error = replayed(alices_tab, answered)
    assert error["code"] == "no_second_look"
    assert words in error["message"]
    response = rated(alices_tab, answered)
    assert response.status_code == 409
    assert words in response.json()["error"]["message"]


def test_a_key_looks_only_through_models_that_it_names(
    alices_tab: Reader, answered: Frame, chat_site: Site
) -> None:
    key = chat_site.create_api_key(alices_tab.email, "api", name="looker")
    path = f"{chat_site.url}/api/messages/{answered['answer']['id']}"

    def looks() -> list[int]:
        with httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60) as program:
            return [
                program.get(f"{path}/tokens").status_code,
                program.post(f"{path}/replay").status_code,
            ]

    name = "UPDATE webapp_apikey SET model_names = %s WHERE name = 'looker'"
    chat_site.execute(name, ["endless"])
    assert looks() == [404, 404]
    chat_site.execute(name, ["sh*"])
    assert looks() == [200, 200]


def test_every_token_says_how_likely_it_was(alices_tab: Reader, answered: Frame) -> None:
    response = rated(alices_tab, answered)
    assert response.status_code == 200, response.text
    (turn,) = response.json()["turns"]
    saved = alices_tab.saved(answered)
    assert len(turn["tokens"]) == saved["usage"]["completion_tokens"]
    # White space at both ends and a piece of a character at the very end are written, and not said.
    shown = "".join(token["text"] for token in turn["tokens"])
    unsaid = "\ufffd" + whitespace
    # Whatever Python takes for a space, \x1f too, ends no text that is saved.
    assert shown.strip(unsaid).strip() == saved["text"].strip(unsaid).strip()
    for token in turn["tokens"][:-1]:
        likely = [other["logprob"] for other in token["top"]]
        assert likely == sorted(likely, reverse=True)
        assert token["logprob"] <= likely[0] + 1e-5
        assert sum(map(exp, likely)) <= 1.0001
        same = [other["logprob"] for other in token["top"] if other["id"] == token["id"]]
        assert same in ([], [token["logprob"]])


def test_a_running_answer_is_not_looked_at(alices_tab: Reader) -> None:
    accepted = alices_tab.send("Go on")
    alices_tab.hear_events(accepted["run"], 3)
    assert "still being written" in replayed(alices_tab, accepted)["message"]
    alices_tab.say({"type": "run.stop", "run": accepted["run"], "chars": None})
    alices_tab.hear_end(accepted["run"])


@pytest.mark.django_db(transaction=True)
def test_a_cold_model_whose_files_have_changed_ends_a_replay_with_its_reason(alice: "User") -> None:
    """Nobody knows its revision before it is loaded, and then the stream has begun."""
    loop = Loop()
    try:
        with as_user(alice.pk):
            rights = Rights(get_user_model().objects.get(pk=alice.pk))  # with the tier
            conversation = Conversation.objects.create(owner=alice)
            answer = Message.objects.create(
                conversation=conversation, role="assistant", model=BUILTIN
            )
            generation = Generation.objects.create(
                conversation=conversation, message=answer, model=BUILTIN, model_revision="another"
            )
            params = {"max_tokens": 2, "temperature": 0.0}
            GenerationTurn.objects.create(
                generation=generation, index=0, params=params, prompt_ids=[5, 6], output_ids=[7, 8]
            )

            async def heard() -> list[Any]:
                assert engine().state(BUILTIN).revision == ""
                return [piece async for piece in replay(rights, answer.pk)]

            begun, broken = loop.run(heard())
        assert begun.kind == "progress"
        assert (broken.kind, broken.code) == ("broken", "no_second_look")
        assert f"The files of {BUILTIN} have changed" in broken.message
    finally:
        loop.close()
