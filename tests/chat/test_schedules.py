"""Prompts that are sent by themselves: what their owner makes of them, and nobody else.

Alice owns a schedule; Charlie has no right.
"""

import re
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tests.chat.reader import Reader
from tests.chat.schedule_steps import (
    BUILTIN,
    after_due,
    alice,
    charlie,
    daily,
    form_of,
    made,
    messages,
    seen,
    site,
)
from tests.sites import Site
from webapp.servers.postgres import Postgres

__all__ = ["alice", "charlie", "site"]


# --- what a schedule is ------------------------------------------------------------------------------


def test_it_is_made_changed_and_deleted(alice: Reader) -> None:
    schedule = made(alice, weekdays=[5, 1, 5], repeats="weekly")
    assert (schedule["weekdays"], schedule["at"], schedule["is_on"]) == ([1, 5], "08:00", True)
    assert datetime.fromisoformat(schedule["next_at"]) > datetime.now(UTC)
    path = f"/api/schedules/{schedule['id']}"
    off = alice.change("PATCH", path, is_on=False, version=schedule["version"]).json()
    assert (off["is_on"], off["next_at"]) == (False, None)
    late = alice.change("PATCH", path, name="Other", version=schedule["version"])
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    on = alice.change("PATCH", path, is_on=True, at="09:30").json()
    assert on["at"] == "09:30"
    assert on["next_at"] is not None
    assert [row["id"] for row in alice.client.get("/api/schedules").json()["items"]] == [on["id"]]
    assert alice.change("DELETE", path).status_code == 204
    assert alice.client.get(path).status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"zone": "Berlin"},
        {"zone": "../../etc/passwd"},
        {"repeats": "hourly"},
        {"repeats": "weekly"},
        {"repeats": "weekly", "weekdays": [0]},
        {"repeats": "once"},
        {"repeats": "once", "on": "2020-01-01"},
        {"repeats": "once", "on": "9999-12-31"},
        {"repeats": "monthly", "day": 32},
        {"at": "25:00"},
        {"at": "08:00+02:00"},
        {"text": "   "},
        {"text": "x" * 20_001},
        {"text": "a\0b"},
        {"name": ""},
        {"assistant": "0199a1b2-0000-7000-8000-000000000001"},
        {"conversation": "0199a1b2-0000-7000-8000-000000000001"},
        {"owner": 1},
    ],
)
def test_what_makes_no_sense_is_refused(alice: Reader, fields: dict[str, Any]) -> None:
    response = alice.change("POST", "/api/schedules", **daily(**fields))
    assert response.status_code in (400, 404, 422), response.text
    assert response.json()["error"]["message"]
    assert alice.client.get("/api/schedules").json()["items"] == []


def test_nobody_has_more_than_some(alice: Reader, site: Site) -> None:
    one = made(alice)
    names = "name, text, repeats, at, zone, weekdays, day, is_on, model, is_one_chat, owner_id"
    rest = "wait_until, num_tries, num_failed, version, created_at, last_problem"
    site.execute(
        f"INSERT INTO chat_schedule (id, {names}, {rest}) SELECT gen_random_uuid(), {names}, {rest}"
        " FROM chat_schedule, generate_series(1, 49) WHERE id = %s",
        one["id"],
    )
    refused = alice.change("POST", "/api/schedules", **daily())
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "too_many")


# --- who has no right --------------------------------------------------------------------------------


def test_charlie_finds_every_door_shut(alice: Reader, charlie: Reader, site: Site) -> None:
    schedule = made(alice, name="Secret plans")
    path = f"/api/schedules/{schedule['id']}"
    assert charlie.client.get("/api/schedules").json()["items"] == []
    assert "Secret plans" not in charlie.client.get("/settings/schedules").text
    for method, door in (
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", f"{path}/send"),
        ("GET", f"/settings/schedules/{schedule['id']}"),
        ("POST", f"/settings/schedules/{schedule['id']}"),
        ("POST", f"/settings/schedules/{schedule['id']}/send"),
        ("GET", f"/settings/schedules/{schedule['id']}/send"),
    ):
        values = {} if method == "GET" else {"name": "Mine"}
        assert charlie.change(method, door, **values).status_code == 404, (method, door)
    sent = alice.send("Mine")
    chat, message = sent["conversation"]["id"], sent["message"]["id"]
    assert charlie.change("POST", "/api/schedules", **daily(conversation=chat)).status_code == 404
    assert charlie.client.get(f"/settings/schedules/new?message={message}").status_code == 404
    assert seen(alice, schedule)["name"] == "Secret plans"
    with site.visitor() as stranger:
        assert stranger.get("/api/schedules").status_code == 401
        assert stranger.get("/settings/schedules").status_code == 302


def test_a_key_of_another_scope_opens_nothing(site: Site, alice: Reader) -> None:
    with site.visitor() as program:
        for scopes, status in ((("chat",), 403), (("api",), 200)):
            key = site.create_api_key(alice.email, *scopes)
            headers = {"Authorization": f"Bearer {key}"}
            assert program.get("/api/schedules", headers=headers).status_code == status


def test_a_key_gets_nothing_by_a_schedule_that_it_may_not_ask_itself(
    site: Site, alice: Reader
) -> None:
    """What is sent by itself knows no key, nor its limits."""
    schedule = made(alice, is_on=False, model="far")
    path = f"/api/schedules/{schedule['id']}"
    for column, value in (
        ("model_names", [BUILTIN]),
        ("tokens_per_day", 1000),
        ("requests_per_minute", 1),
    ):
        key = site.create_api_key(alice.email, "api")
        narrowed = f"UPDATE webapp_apikey SET {column} = %s WHERE prefix = %s"
        assert site.execute(narrowed, value, key[:11]) == 1
        headers = {"Authorization": f"Bearer {key}"}
        with site.visitor() as program:
            made_by_key = program.post("/api/schedules", json=daily(model="far"), headers=headers)
            changed = program.patch(path, json={"is_on": True}, headers=headers)
            codes = [each.json()["error"]["code"] for each in (made_by_key, changed)]
            assert codes == ["not_allowed"] * 2, column
            assert program.get(path, headers=headers).status_code == 200
            if column == "model_names":
                sent = program.post(f"{path}/send", headers=headers)
                assert sent.json()["error"]["code"] == "model_not_found"
    assert seen(alice, schedule)["version"] == schedule["version"]


def test_raw_sql_in_anothers_scope_sees_and_changes_nothing(site: Site, alice: Reader) -> None:
    made(alice, name="Row level")
    with psycopg.connect(Postgres(site.data_dir).conninfo(), autocommit=True) as connection:
        for scope, is_seen in (("", False), ("user:-1", False), ("system", True)):
            connection.execute("SELECT set_config('vitrine.scope', %s, false)", [scope])
            rows = connection.execute("SELECT 1 FROM chat_schedule WHERE name = 'Row level'")
            assert bool(rows.fetchall()) is is_seen, scope
            if not is_seen:
                changed = connection.execute("UPDATE chat_schedule SET name = 'x'")
                assert changed.rowcount == 0


# --- pages -------------------------------------------------------------------------------------------


def test_the_pages_need_no_script(alice: Reader) -> None:
    form = {**form_of(alice), "repeats": "weekly", "weekdays": ["1", "3"]}
    token = form["csrfmiddlewaretoken"]
    sent = alice.send("Say <this> again")
    page = alice.client.get(f"/settings/schedules/new?message={sent['message']['id']}")
    assert "Say &lt;this&gt; again" in page.text
    wrong = alice.client.post("/settings/schedules/new", data={**form, "weekdays": []})
    assert wrong.status_code == 400
    its_error = r"<fieldset[^>]*aria-describedby=.id_weekdays_error.*?Choose a day.*?</fieldset>"
    assert re.search(its_error, wrong.text, re.S)
    right = alice.client.post("/settings/schedules/new", data=form)
    assert right.status_code == 302
    [row] = alice.client.get("/api/schedules").json()["items"]
    assert (row["weekdays"], row["at"], row["zone"]) == ([1, 3], "07:15", "Asia/Tokyo")
    listed = alice.client.get("/settings/schedules").text
    assert "Mon, Wed, 7:15 a.m." in listed
    path = f"/settings/schedules/{row['id']}"
    assert alice.client.get(path).text.count("checked") >= 4
    sent = alice.client.post(f"{path}/send", data={"csrfmiddlewaretoken": token})
    assert sent.status_code == 302
    assert sent.headers["Location"].startswith("/c/")
    gone = alice.client.post(path, data={"csrfmiddlewaretoken": token, "delete": "yes"})
    assert gone.status_code == 302
    assert alice.client.get("/api/schedules").json()["items"] == []


def test_what_the_form_hides_is_not_looked_at(alice: Reader) -> None:
    wrong = {"on": "tomorrow", "day": "45", "weekdays": ["9"]}
    for repeats in ("daily", "weekly", "monthly", "once"):
        sent = {**form_of(alice), **wrong, "repeats": repeats}
        refused = alice.client.post("/settings/schedules/new", data=sent)
        assert refused.status_code == (302 if repeats == "daily" else 400), repeats
        assert refused.text.count('class="errorlist"') == (repeats != "daily"), refused.text
    [row] = alice.client.get("/api/schedules").json()["items"]
    assert (row["on"], row["day"], row["weekdays"]) == (None, 1, [])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("complete", None),
        ("failed", "The last answer failed."),
        ("refused", "A policy stopped the last answer."),
    ],
)
def test_the_list_tells_how_the_last_answer_ended(
    alice: Reader, site: Site, status: str, words: str | None
) -> None:
    """Nobody has to open the chat to see that nothing comes of it."""
    chat = after_due(site, alice, made(alice))["conversation"]
    messages(alice, chat)
    end = "UPDATE chat_message SET status = %s WHERE conversation_id = %s AND role = 'assistant'"
    site.execute(end, status, chat)
    page = alice.client.get("/settings/schedules").text
    assert f'href="/c/{chat}"' in page
    for one in ("The last answer failed.", "A policy stopped the last answer."):
        assert (one in page) is (one == words)
