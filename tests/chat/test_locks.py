"""An answer's end and what its reader does to the chat never wait for each other in a circle."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.db import connection

from chat import actions, library, run_log, tree, turns
from chat.actions import Sent
from chat.events import Delta, Finished, LogEvent, Started
from chat.models import Generation
from chat.rights import Rights
from chat.spans import Clock, Trace
from webapp.tenancy import as_user

if TYPE_CHECKING:
    from webapp.models import User

OWNER = "this process"
_WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def delete_message(user: "User", sent: Sent) -> None:
    tree.delete(user, sent.message.pk, "d", with_replies=True, version=None)


def delete_chat(user: "User", sent: Sent) -> None:
    library.change(user, sent.conversation.pk, {"deleted": True}, None)


def bring_back(user: "User", sent: Sent) -> None:
    library.change(user, sent.conversation.pk, {"deleted": False}, None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [delete_message, delete_chat])
def test_an_answer_ends_while_its_chat_changes(
    alice: "User", monkeypatch: pytest.MonkeyPatch, change: Callable[["User", Sent], None]
) -> None:
    with as_user(alice.pk), ThreadPoolExecutor(1) as pool:
        draft = actions.Draft(client_id=uuid4().hex, text="Hi", model="vitrine-small")
        sent = actions.send_message(Rights(alice), draft, lease_owner=OWNER)
        end = turns.end
        changing: list[Future[None]] = []

        def in_the_middle(*arguments: object) -> None:
            """The run's row is locked, the message not yet."""
            changing.append(pool.submit(_alone, change, alice, sent))
            _wait_until_somebody_waits()
            end(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(turns, "end", in_the_middle)
        events: list[LogEvent] = [Started("m", "r", 7), Delta("Hello", 0), Finished("stop")]
        run_log.finish(sent.generation.pk, OWNER, 1, events, events, Trace(Clock(), "1"))
        changing[0].result(timeout=10)
        bring_back(alice, sent)
        assert Generation.objects.filter(conversation=sent.conversation, status="finished").exists()


def _alone(change: Callable[["User", Sent], None], user: "User", sent: Sent) -> None:
    try:
        with as_user(user.pk):
            change(user, sent)
    finally:
        connection.close()


def _wait_until_somebody_waits() -> None:
    until_s = time.monotonic() + 5
    while time.monotonic() < until_s:
        with connection.cursor() as cursor:
            cursor.execute(_WAITING)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
