"""What tests do with schedules: made, due as soon as the row says so, and looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from tests.chat.reader import Frame, Reader, a_reader
from tests.sites import Site, SiteMaker, wait_until
from tests.upstream_server import UpstreamServer, events, texts

BUILTIN = "vitrine-small"
TEXT = "What is new about Zephyr51?"
_seconds = count(1000, -1)


@pytest.fixture(scope="module")
def site(make_site: SiteMaker, server: UpstreamServer) -> Iterator[Site]:
    """The built-in model, and another server's, which answers where none is named."""
    server.title = events(*texts("A title"))
    models = f"{BUILTIN},far={server.url}"
    with make_site(VITRINE_MODELS=models, VITRINE_DEFAULT_MODEL="far") as site:
        site.set_up().close()
        yield site


@pytest.fixture
def alice(site: Site, server: UpstreamServer) -> Iterator[Reader]:
    answer_as_usual(server)
    yield from a_reader(site, "alice")


@pytest.fixture
def charlie(site: Site) -> Iterator[Reader]:
    yield from a_reader(site, "charlie")


@contextmanager
def plan(site: Site, **limits: int | None) -> Iterator[None]:
    """Everybody's plan with these limits, and afterwards as it was."""
    names = ", ".join(limits)
    changed = ", ".join(f"{name} = %s" for name in limits)
    with site.connection() as connection:
        before = connection.execute(f"SELECT {names}, slug FROM webapp_tier").fetchall()
    site.execute(f"UPDATE webapp_tier SET {changed}", *limits.values())
    try:
        yield
    finally:
        for values in before:
            site.execute(f"UPDATE webapp_tier SET {changed} WHERE slug = %s", *values)


@contextmanager
def left_off(site: Site) -> Iterator[None]:
    """What is due within is not asked again in the tests after it."""
    try:
        yield
    finally:
        site.execute("UPDATE chat_schedule SET is_on = false")


def answer_as_usual(server: UpstreamServer) -> None:
    server.answers = [events(*texts("Nothing new."))]
    server.asked.clear()


def daily(**fields: Any) -> dict[str, Any]:
    return {
        "name": "News",
        "text": TEXT,
        "repeats": "daily",
        "at": "08:00",
        "zone": "Europe/Berlin",
        **fields,
    }


def form_of(reader: Reader) -> dict[str, Any]:
    """As the page sends it: every day."""
    return {
        "csrfmiddlewaretoken": reader.client.cookies.get("vitrine_csrf") or "",
        "name": "Every other day",
        "text": TEXT,
        "repeats": "daily",
        "day": "1",
        "at": "07:15",
        "zone": "Asia/Tokyo",
        "is_one_chat": "on",
        "is_on": "on",
    }


def made(reader: Reader, **fields: Any) -> Frame:
    response = reader.change("POST", "/api/schedules", **daily(**fields))
    assert response.status_code == 201, response.text
    value: Frame = response.json()
    return value


def seen(reader: Reader, schedule: Frame) -> Frame:
    value: Frame = reader.client.get(f"/api/schedules/{schedule['id']}").json()
    return value


def make_due(site: Site, schedule: Frame, *, since: timedelta = timedelta()) -> str:
    """Returns when it was due: whole seconds, each time others."""
    since += timedelta(seconds=next(_seconds))
    at = (datetime.now(UTC) - since).replace(microsecond=0).isoformat()
    site.execute(
        "UPDATE chat_schedule SET next_at = %s, wait_until = %s, is_on = true WHERE id = %s",
        at,
        at,
        schedule["id"],
    )
    return at


def is_noted(reader: Reader, schedule: Frame, at: str) -> Frame | None:
    now = seen(reader, schedule)
    is_over = now["next_at"] is None or datetime.fromisoformat(now["next_at"]) > datetime.now(UTC)
    return now if is_over else None


def after_due(site: Site, reader: Reader, schedule: Frame) -> Frame:
    """The schedule once it is noted what became of this time."""
    at = make_due(site, schedule)
    found: Frame = wait_until(lambda: is_noted(reader, schedule, at), what="the schedule")
    return found


def num_tries(site: Site, schedule: Frame) -> int:
    with site.connection() as connection:
        row = connection.execute(
            "SELECT num_tries FROM chat_schedule WHERE id = %s", [schedule["id"]]
        ).fetchone()
    return int(row[0]) if row else 0


def is_past(site: Site, schedule: Frame) -> bool:
    """Whether it was sent, or waits."""
    with site.connection() as connection:
        row = connection.execute(
            "SELECT greatest(next_at, wait_until) > now() FROM chat_schedule WHERE id = %s",
            [schedule["id"]],
        ).fetchone()
    return bool(row and row[0])


def messages(reader: Reader, chat: str | None) -> list[tuple[str, str]]:
    """Roles and texts of the shown branch, once the last answer is complete."""
    assert chat is not None

    def complete() -> list[Frame] | None:
        rows: list[Frame] = reader.conversation(chat)["messages"]
        return rows if all(row["status"] == "complete" for row in rows) else None

    rows = wait_until(complete, what="the answer")
    return [(row["role"], row["text"]) for row in rows]


def chats(reader: Reader) -> list[Frame]:
    found: list[Frame] = reader.client.get("/api/conversations").json()["items"]
    return found
