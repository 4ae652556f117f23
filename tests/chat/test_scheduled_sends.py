"""Prompts that are sent by themselves: at their times, once each, and as their owner's messages."""

from datetime import UTC, datetime, timedelta

from tests.chat.reader import Reader
from tests.chat.schedule_steps import (
    BUILTIN,
    TEXT,
    after_due,
    alice,
    charlie,
    chats,
    form_of,
    is_noted,
    is_past,
    left_off,
    made,
    make_due,
    messages,
    num_tries,
    plan,
    seen,
    site,
)
from tests.sites import Site, wait_until
from tests.upstream_server import UpstreamServer, events, texts

__all__ = ["alice", "charlie", "site"]


# --- what is sent ------------------------------------------------------------------------------------


def test_each_time_goes_on_in_one_chat(alice: Reader, site: Site, server: UpstreamServer) -> None:
    schedule = made(alice)
    now = after_due(site, alice, schedule)
    chat = now["conversation"]
    assert messages(alice, chat) == [("user", TEXT), ("assistant", "Nothing new.")]
    assert (now["last_problem"], now["is_on"]) == ("", True)
    [row] = chats(alice)
    assert (row["id"], row["title"]) == (chat, "News")
    assert after_due(site, alice, schedule)["conversation"] == chat
    assert [role for role, _ in messages(alice, chat)] == ["user", "assistant"] * 2
    told = [one["content"] for one in server.asked[-1].body["messages"] if one["role"] != "system"]
    assert told == [TEXT, "Nothing new.", TEXT]
    assert len(chats(alice)) == 1


def test_each_time_begins_a_chat_of_its_own(alice: Reader, site: Site) -> None:
    schedule = made(alice, is_one_chat=False)
    first = after_due(site, alice, schedule)["conversation"]
    second = after_due(site, alice, schedule)["conversation"]
    assert first != second
    assert messages(alice, first) == messages(alice, second)
    assert all(row["title"].startswith("News · ") for row in chats(alice))
    assert len(chats(alice)) == 2


def test_it_goes_on_in_a_chat_that_there_is(alice: Reader, site: Site) -> None:
    accepted = alice.send("Hello")
    alice.hear_end(accepted["run"])
    chat = accepted["conversation"]["id"]
    schedule = made(alice, conversation=chat)
    assert after_due(site, alice, schedule)["conversation"] == chat
    assert [text for _, text in messages(alice, chat)][::2] == ["Hello", TEXT]
    while True:  # an open page hears of it, as of what another tab has asked
        told = alice.hear_until(type="conversation.changed")
        if told["conversation"]["version"] > accepted["conversation"]["version"]:
            break
    assert told["conversation"]["id"] == chat


def test_a_chat_keeps_its_model(alice: Reader, site: Site) -> None:
    """And one that is begun has its owner's usual one, where nobody has named one."""

    def models(chat: str) -> list[str]:
        messages(alice, chat)
        rows = alice.conversation(chat)["messages"]
        return [row["model"] for row in rows if row["role"] == "assistant"]

    accepted = alice.send("Hello", model=BUILTIN)
    alice.hear_end(accepted["run"])
    chat = accepted["conversation"]["id"]
    after_due(site, alice, made(alice, conversation=chat))
    assert models(chat) == [BUILTIN, BUILTIN]
    site.execute("UPDATE chat_conversation SET model = 'gone' WHERE id = %s", chat)
    after_due(site, alice, made(alice, conversation=chat))
    assert models(chat)[2:] == ["far"], "one that is not here any more is followed by the usual one"
    alice.change("PATCH", "/api/personalisation", default_model=BUILTIN)
    assert models(after_due(site, alice, made(alice))["conversation"]) == [BUILTIN]
    named = after_due(site, alice, made(alice, model="far", conversation=chat))
    assert models(named["conversation"])[3:] == ["far"]


def test_a_chat_that_was_deleted_is_followed_by_another(alice: Reader, site: Site) -> None:
    schedule = made(alice)
    chat = after_due(site, alice, schedule)["conversation"]
    messages(alice, chat)
    assert alice.change("DELETE", f"/api/conversations/{chat}").status_code in (200, 204)
    other = after_due(site, alice, schedule)["conversation"]
    assert other != chat
    assert len(messages(alice, other)) == 2


def test_an_assistant_answers(alice: Reader, site: Site, server: UpstreamServer) -> None:
    nina = {"name": "Nina", "system_prompt": "Be Nina.", "parameters": {"temperature": 0.25}}
    assistant = alice.change("POST", "/api/assistants", **nina).json()
    messages(alice, after_due(site, alice, made(alice, assistant=assistant["id"]))["conversation"])
    asked = server.asked[-1].body
    assert "Be Nina." in asked["messages"][0]["content"]
    assert asked["temperature"] == 0.25


def test_it_is_answered_from_what_its_chat_is(alice: Reader, site: Site) -> None:
    """As a page has picked for the next question what the one before was answered from."""
    notes, other = (
        alice.change("POST", "/api/collections", name=name).json()["id"]
        for name in ("Notes", "Other")
    )
    accepted = alice.send("Hello", sources={"collections": [notes], "documents": []})
    alice.hear_end(accepted["run"])
    chat = accepted["conversation"]["id"]
    schedule = made(alice, conversation=chat)

    def picked() -> list[list[str]]:
        rows = alice.conversation(chat)["messages"]
        of_questions = [row["sources"] or {} for row in rows if row["role"] == "user"]
        return [[one["id"] for one in each.get("collections", [])] for each in of_questions]

    after_due(site, alice, schedule)
    messages(alice, chat)
    parent = alice.conversation(chat)["messages"][-1]["id"]
    beside = alice.send("By the way", conversation=chat, parent=parent)
    alice.hear_end(beside["run"])
    after_due(site, alice, schedule)
    messages(alice, chat)
    assert picked() == [[notes], [notes], [], [notes]]
    nina = alice.change("POST", "/api/assistants", name="Nina", collections=[other]).json()["id"]
    path = f"/api/schedules/{schedule['id']}"
    assert alice.change("PATCH", path, assistant=nina).status_code == 200
    assert alice.change("DELETE", f"/api/collections/{notes}").status_code in (200, 202, 204)
    after_due(site, alice, schedule)
    messages(alice, chat)
    assert picked()[4:] == [[other]], "and not from what is gone"


def test_it_is_answered_behind_what_people_wait_for(alice: Reader, site: Site) -> None:
    chat = after_due(site, alice, made(alice))["conversation"]
    with site.connection() as connection:
        params = "SELECT params->>'priority' FROM chat_generation WHERE conversation_id = %s"
        assert connection.execute(params, [chat]).fetchone() == ("background",)


def test_what_was_missed_is_made_up_for_once(alice: Reader, site: Site) -> None:
    schedule = made(alice, repeats="weekly", weekdays=[1, 2, 3, 4, 5, 6, 7])
    make_due(site, schedule, since=timedelta(days=12))
    now = wait_until(lambda: is_noted(alice, schedule, ""), what="the schedule")
    assert len(messages(alice, now["conversation"])) == 2


def test_a_time_is_one_message_however_often_it_is_sent(alice: Reader, site: Site) -> None:
    """As where a process died between the message and the note of it."""
    schedule = made(alice)
    at = make_due(site, schedule)
    chat = wait_until(lambda: is_noted(alice, schedule, at), what="the schedule")["conversation"]
    messages(alice, chat)
    again = "UPDATE chat_schedule SET next_at = %s, conversation_id = NULL WHERE id = %s"
    site.execute(again, at, schedule["id"])
    now = wait_until(lambda: is_noted(alice, schedule, at), what="the schedule")
    assert now["conversation"] == chat
    assert len(messages(alice, chat)) == 2
    assert len(chats(alice)) == 1


def test_once_is_over_then(alice: Reader, site: Site) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    schedule = made(alice, repeats="once", on=tomorrow)
    site.execute("UPDATE chat_schedule SET \"on\" = '2020-01-01' WHERE id = %s", schedule["id"])
    now = after_due(site, alice, schedule)
    assert (now["is_on"], now["next_at"], now["last_problem"]) == (False, None, "")
    assert len(messages(alice, now["conversation"])) == 2


def test_it_is_sent_at_once_where_its_owner_says_so(alice: Reader, charlie: Reader) -> None:
    schedule = made(alice, is_on=False)
    path = f"/api/schedules/{schedule['id']}/send"
    assert charlie.change("POST", path).status_code == 404
    sent = alice.change("POST", path)
    assert sent.status_code == 201, sent.text
    chat = sent.json()["conversation"]["id"]
    assert len(messages(alice, chat)) == 2
    assert seen(alice, schedule)["conversation"] == chat
    assert seen(alice, schedule)["is_on"] is False


# --- what is in the way ------------------------------------------------------------------------------


def test_it_waits_for_the_answer_before(alice: Reader, site: Site, server: UpstreamServer) -> None:
    server.answers = [
        events(*texts(*["word "] * 40), pause_s=0.1),
        events(*texts("Nothing new.")),
    ]
    accepted = alice.send("Hello")
    chat = accepted["conversation"]["id"]
    schedule = made(alice, conversation=chat)
    make_due(site, schedule)
    wait_until(lambda: num_tries(site, schedule), what="a try that was in vain")
    assert seen(alice, schedule)["last_problem"] == ""
    alice.hear_end(accepted["run"])
    site.execute("UPDATE chat_schedule SET wait_until = now() WHERE id = %s", schedule["id"])
    wait_until(lambda: is_noted(alice, schedule, ""), what="the schedule")
    assert [text for _, text in messages(alice, chat)][::2] == ["Hello", TEXT]
    assert num_tries(site, schedule) == 0


def test_who_waits_for_the_plan_leaves_its_owner_the_requests(
    alice: Reader, site: Site, server: UpstreamServer
) -> None:
    server.answers = [events(*texts(*["word "] * 300), pause_s=0.1)]
    with plan(site, requests_per_minute=6, concurrent_runs=2), left_off(site):
        schedules = [made(alice, is_one_chat=False) for _ in range(12)]
        for schedule in schedules:
            make_due(site, schedule)
        wait_until(lambda: all(is_past(site, one) for one in schedules), what="a look at all")
        assert len(chats(alice)) == 1
        asked = alice.change("POST", "/api/messages", text="Hello")
        assert asked.status_code == 201, asked.text


def test_one_place_is_left_to_its_owner(alice: Reader, site: Site, server: UpstreamServer) -> None:
    """Of a new chat, which is begun in another way, and of one that goes on."""
    server.answers = [
        events(*texts("Hello.")),
        *[events(*texts(*["word "] * 300), pause_s=0.1)] * 3,
    ]
    accepted = alice.send("Hello")
    alice.hear_end(accepted["run"])
    old = made(alice, conversation=accepted["conversation"]["id"])
    new = [made(alice, is_one_chat=False) for _ in range(2)]
    with left_off(site):
        for schedule in (*new, old):
            make_due(site, schedule)
        wait_until(lambda: all(is_past(site, one) for one in (*new, old)), what="a look at all")
        assert len(chats(alice)) == 2
        asked = alice.change("POST", "/api/messages", text="I myself")
        assert asked.status_code == 201, asked.text


def test_a_chat_that_is_written_in_costs_no_requests(
    alice: Reader, site: Site, server: UpstreamServer
) -> None:
    server.answers = [events(*texts(*["word "] * 300), pause_s=0.1)]
    chat = alice.send("Hello")["conversation"]["id"]
    schedules = [made(alice, conversation=chat) for _ in range(8)]
    with plan(site, requests_per_minute=6), left_off(site):
        for schedule in schedules:
            make_due(site, schedule)
        wait_until(lambda: all(num_tries(site, one) for one in schedules), what="tries in vain")
        assert alice.change("POST", "/api/messages", text="Other").status_code == 201


def test_what_waits_is_sent_though_its_form_is_saved(alice: Reader, site: Site) -> None:
    schedule = made(alice)
    make_due(site, schedule)
    wait_until(lambda: is_noted(alice, schedule, ""), what="the first time")
    waiting = "UPDATE chat_schedule SET next_at = %s, wait_until = %s WHERE id = %s"
    now = datetime.now(UTC)
    site.execute(waiting, now - timedelta(hours=2), now + timedelta(hours=1), schedule["id"])
    form = {**form_of(alice), "name": "Other", "at": "08:00", "zone": "Europe/Berlin"}
    saved = alice.client.post(f"/settings/schedules/{schedule['id']}", data=form)
    assert saved.status_code == 302
    now_ = wait_until(lambda: is_noted(alice, schedule, ""), what="the schedule")
    assert now_["name"] == "Other"
    assert len(messages(alice, now_["conversation"])) == 4


def test_a_model_that_is_gone_is_told_of_and_ends_it_one_day(alice: Reader, site: Site) -> None:
    schedule = made(alice, model="gone")
    for number in range(1, 6):
        now = after_due(site, alice, schedule)
        assert "gone" in now["last_problem"]
        assert now["is_on"] is (number < 5)
    assert chats(alice) == []
    changed = alice.change("PATCH", f"/api/schedules/{schedule['id']}", model="", is_on=True).json()
    assert (changed["last_problem"], changed["is_on"]) == ("", True)
    now = after_due(site, alice, schedule)
    assert (now["last_problem"], now["conversation"] is None) == ("", False)


def test_a_budget_that_is_spent_passes_over_this_time(alice: Reader, site: Site) -> None:
    schedule = made(alice)
    site.execute("UPDATE webapp_user SET cost_per_month = 0 WHERE email = %s", alice.email)
    for _ in range(6):
        now = after_due(site, alice, schedule)
        assert "this month are used up" in now["last_problem"]
        assert (now["is_on"], now["last_at"]) == (True, None)
    assert chats(alice) == []
    site.execute("UPDATE webapp_user SET cost_per_month = NULL WHERE email = %s", alice.email)
    assert after_due(site, alice, schedule)["last_problem"] == ""


def test_a_place_that_is_gone_keeps_nobody_waiting(alice: Reader, site: Site) -> None:
    """As where another release of the time zones leaves out its name."""
    schedule = made(alice, is_one_chat=False)
    site.execute("UPDATE chat_schedule SET zone = 'Nowhere/Gone' WHERE id = %s", schedule["id"])
    now = after_due(site, alice, schedule)
    assert (now["is_on"], now["last_problem"]) == (False, "There is no such time zone.")
    assert len(messages(alice, now["conversation"])) == 2
    sent = alice.change("POST", f"/api/schedules/{schedule['id']}/send")
    assert sent.status_code == 201, sent.text
    assert len(chats(alice)) == 2


def test_a_fault_of_ours_waits_and_is_told(alice: Reader, site: Site) -> None:
    """Of one that cannot be noted: what comes behind it is not to wait for it."""
    schedule = made(alice)
    site.execute("ALTER TABLE chat_conversation ADD CONSTRAINT faulty CHECK (title <> 'Zebra')")
    try:
        site.execute("UPDATE chat_schedule SET name = 'Zebra' WHERE id = %s", schedule["id"])
        make_due(site, schedule)
        wait_until(lambda: num_tries(site, schedule), what="a try that was in vain")
        lines = [line for line in site.lines if f"schedule {schedule['id']}" in line]
        assert len(lines) == 1, "it is not tried again at once"
        end = "UPDATE chat_schedule SET num_tries = 120, wait_until = now() WHERE id = %s"
        site.execute(end, schedule["id"])
        now = wait_until(lambda: is_noted(alice, schedule, ""), what="the schedule")
        assert now["last_problem"] == "Something went wrong on our side."
    finally:
        site.execute("ALTER TABLE chat_conversation DROP CONSTRAINT faulty")


def test_who_is_suspended_sends_nothing(alice: Reader, site: Site) -> None:
    schedule = made(alice)
    site.execute("UPDATE webapp_user SET is_active = false WHERE email = %s", alice.email)
    make_due(site, schedule)

    def problem() -> str | None:
        with site.connection() as connection:
            row = connection.execute(
                "SELECT last_problem FROM chat_schedule WHERE id = %s", [schedule["id"]]
            ).fetchone()
        return row[0] if row else None

    assert wait_until(problem, what="a note") == "The account may not ask anything."
    with site.connection() as connection:
        mine = connection.execute(
            "SELECT count(*) FROM chat_conversation WHERE owner_id ="
            " (SELECT id FROM webapp_user WHERE email = %s)",
            [alice.email],
        )
        assert mine.fetchone() == (0,)


# --- kill -9 -----------------------------------------------------------------------------------------


def test_a_process_that_dies_sends_nothing_twice_and_loses_nothing(
    alice: Reader, site: Site
) -> None:
    with plan(site, requests_per_minute=None, concurrent_runs=1000):
        schedules = [
            made(alice, name=f"Number {n}", text=f"Say {n}", model=BUILTIN) for n in range(12)
        ]
        ids = [schedule["id"] for schedule in schedules]
        due = (datetime.now(UTC) - timedelta(seconds=5)).replace(microsecond=0).isoformat()
        site.execute("UPDATE chat_schedule SET next_at = %s WHERE id = ANY(%s)", due, ids)

        def num_noted() -> int:
            with site.connection() as connection:
                row = connection.execute(
                    "SELECT count(*) FROM chat_schedule WHERE id = ANY(%s) AND next_at > now()",
                    [ids],
                ).fetchone()
            return int(row[0]) if row else 0

        wait_until(lambda: num_noted() >= 3, what="the first ones")
        web = site.child("web")
        web.kill()
        web.wait()
        wait_until(lambda: num_noted() == len(ids), timeout_s=120, what="the rest")
        with site.connection() as connection:
            sent = connection.execute(
                "SELECT message.text, count(*) FROM chat_message AS message"
                " JOIN chat_schedule AS schedule USING (conversation_id)"
                " WHERE schedule.id = ANY(%s) AND message.role = 'user' GROUP BY message.text",
                [ids],
            ).fetchall()
            all_of_them = connection.execute(
                "SELECT count(*) FROM chat_message WHERE text ~ '^Say [0-9]+$' AND role = 'user'"
            ).fetchone()
        assert sorted(sent) == sorted((f"Say {n}", 1) for n in range(12))
        assert all_of_them == (12,)
        for schedule in schedules:
            assert messages(alice, seen(alice, schedule)["conversation"])[1][1]
