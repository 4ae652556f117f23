"""Letters: how the server is spoken to, and what becomes of one that it does not take at once."""

import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage
from prometheus_client import REGISTRY

from tests.sites import wait_until
from webapp.mail import _Outbox, finish_letters, hurry_letters, send_soon
from webapp.mail_settings import smtp_encryption


@pytest.mark.parametrize(
    ("value", "port", "is_starttls", "is_implicit"),
    [
        ("", 587, True, False),
        ("true", 587, True, False),
        ("", 465, False, True),
        ("true", 465, False, True),
        ("implicit", 2465, False, True),
        ("false", 465, False, False),
        ("false", 25, False, False),
    ],
)
def test_tls_begins_as_the_port_or_the_variable_wants(
    monkeypatch: pytest.MonkeyPatch, value: str, port: int, is_starttls: bool, is_implicit: bool
) -> None:
    monkeypatch.setenv("SMTP_TLS", value)
    assert smtp_encryption(port) == (is_starttls, is_implicit)


def test_another_word_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_TLS", "perhaps")
    with pytest.raises(ImproperlyConfigured, match=r"SMTP_TLS must be .*implicit.*perhaps"):
        smtp_encryption(587)


class Postbox(socketserver.ThreadingTCPServer):
    """A mail server that is busy for its first `num_busy` visitors."""

    daemon_threads = True

    def __init__(self, num_busy: int) -> None:
        super().__init__(("127.0.0.1", 0), _Visit)
        self.num_busy = num_busy
        self.letters: list[str] = []


class _Visit(socketserver.StreamRequestHandler):
    server: Postbox

    def handle(self) -> None:
        self.server.num_busy -= 1
        if self.server.num_busy >= 0:
            return self._say("421 busy")
        self._say("220 here")
        for line in self.rfile:
            verb = line[:4].upper()
            self._say({b"DATA": "354 go on", b"QUIT": "221 bye"}.get(verb, "250 well"))
            if verb == b"DATA":
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.letters.append(b"".join(lines).decode())
                self._say("250 taken")
        return None

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def postbox(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postbox]:
    monkeypatch.setattr("webapp.mail._PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr("webapp.mail._outbox", _Outbox())
    with Postbox(num_busy=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        yield server
        server.shutdown()


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value("vitrine_letters_total", {"outcome": outcome}) or 0.0


def letter() -> EmailMessage:
    return EmailMessage("A subject", "The words.", "us@example.org", ["you@example.org"])


def test_a_server_that_is_busy_once_is_asked_again(postbox: Postbox) -> None:
    postbox.num_busy = 1
    sent, put_off = count("sent"), count("put_off")
    send_soon(letter())
    wait_until(lambda: count("sent") == sent + 1, what="the letter")
    assert "The words." in postbox.letters[0]
    assert len(postbox.letters) == 1
    assert count("put_off") == put_off + 1


def test_one_that_stays_busy_loses_it_and_is_counted(postbox: Postbox) -> None:
    postbox.num_busy = 100
    lost, put_off = count("lost"), count("put_off")
    send_soon(letter())
    wait_until(lambda: count("lost") == lost + 1, what="the end")
    assert count("put_off") == put_off + 2
    assert not postbox.letters


def test_however_many_wait_one_thread_waits_for_them(
    postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.mail._PAUSES_S", (1.0,))
    postbox.num_busy = 50
    put_off, sent = count("put_off"), count("sent")
    for _ in range(50):
        send_soon(letter())
    wait_until(lambda: count("put_off") == put_off + 50, what="all to be put off")
    waiting = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    assert not waiting
    wait_until(lambda: count("sent") == sent + 50, what="all letters")


def test_one_of_many_keeps_no_other_letter_waiting(
    postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    sent = count("sent")
    invitations = [letter() for _ in range(5)]
    for one in invitations:
        monkeypatch.setattr(one, "send", may_go_on.wait)
        send_soon(one, is_one_of_many=True)
    send_soon(letter())
    wait_until(lambda: count("sent") == sent + 1, what="the letter of somebody who waits")
    may_go_on.set()
    wait_until(lambda: count("sent") == sent + 6, what="the invitations")


def test_at_the_end_what_waits_is_tried_at_once_and_for_the_last_time(
    postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.mail._PAUSES_S", (300.0, 300.0))
    postbox.num_busy = 3
    put_off, sent, lost = count("put_off"), count("sent"), count("lost")
    for _ in range(2):
        send_soon(letter())
    wait_until(lambda: count("put_off") == put_off + 2, what="both to be put off")
    hurry_letters()
    finish_letters(5.0)
    assert (count("sent"), count("lost")) == (sent + 1, lost + 1)
    assert count("put_off") == put_off + 2


def test_what_is_not_sent_by_the_end_is_told_as_lost(
    postbox: Postbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    may_go_on = threading.Event()
    lost = count("lost")
    slow = letter()
    monkeypatch.setattr(slow, "send", may_go_on.wait)
    send_soon(slow)
    finish_letters(0.01)
    assert "1 letters could not be sent before the end" in caplog.text
    assert count("lost") == lost + 1
    may_go_on.set()
