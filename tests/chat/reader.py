"""A browser tab's half of the chat, for tests: a session, a socket, and what came over it."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from types import TracebackType
from typing import Any, Self

import httpx2
from websockets.sync.client import ClientConnection, connect

from tests.sites import Site, email_of

_numbers = count(1)
TERMINAL = ("finished", "stopped", "refused", "failed")
Frame = dict[str, Any]


class Reader:
    """Signed in, with one open socket. `frames` is everything that was received, in order."""

    def __init__(self, site: Site, client: httpx2.Client) -> None:
        self.site = site
        self.client = client
        self.frames: list[Frame] = []
        self.socket: ClientConnection | None = None
        self.email = ""
        self._stack = ExitStack()

    @classmethod
    def signed_up(cls, site: Site, name: str) -> Self:
        """A new user; the name is made unique, since sites are shared by tests."""
        name = f"{name}{next(_numbers)}"
        reader = cls(site, site.sign_up(name))
        reader.email = email_of(name)
        return reader

    def another_tab(self) -> "Reader":
        return Reader(self.site, self.client)

    # --- the socket -----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> Self:
        cookies = "; ".join(f"{c.name}={c.value}" for c in self.client.cookies.jar)
        self.socket = self._stack.enter_context(
            connect(
                f"ws://127.0.0.1:{self.site.port}/ws/chat/",
                additional_headers={"Cookie": cookies},
                origin=self.site.url,  # type: ignore[arg-type]
                max_size=2**24,
                ping_interval=None,  # a test may leave a tab unread for long, and its pongs with it
                # Else 16 unread frames stand before the server's end of the line, which closing it
                # waits 10 s for.
                max_queue=None,
            )
        )
        return self

    def close(self) -> None:
        self._stack.close()
        self.socket = None

    def say(self, frame: Frame | str) -> None:
        assert self.socket is not None
        self.socket.send(frame if isinstance(frame, str) else json.dumps(frame))

    def hear(self, timeout_s: float = 20.0) -> Frame:
        """The next frame."""
        assert self.socket is not None
        frame: Frame = json.loads(self.socket.recv(timeout=timeout_s))
        self.frames.append(frame)
        if frame["type"] == "run.event" and frame["seq"] % 20 == 0:
            self.say({"type": "run.ack", "run": frame["run"], "seq": frame["seq"]})
        return frame

    def hear_until(self, *, timeout_s: float = 60.0, **wanted: Any) -> Frame:
        """Frames up to the first whose fields are as wanted."""
        deadline = time.monotonic() + timeout_s
        while True:
            frame = self.hear(max(0.1, deadline - time.monotonic()))
            if all(frame.get(name) == value for name, value in wanted.items()):
                return frame

    # --- runs -----------------------------------------------------------------------------------

    def send(self, text: str, **fields: Any) -> Frame:
        """Send a message; returns message.accepted."""
        client_id = fields.pop("client_id", f"c{next(_numbers)}")
        self.say({"type": "message.send", "client_id": client_id, "text": text, **fields})
        return self.hear_until(type="message.accepted", client_id=client_id)

    def follow(self, run: str, after: int = 0) -> None:
        self.say({"type": "run.follow", "run": run, "after": after})

    def hear_events(self, run: str, num_events: int) -> None:
        """Until this tab has so many events of the run."""
        while len(self.events(run)) < num_events:
            self.hear()

    def hear_text(self, run: str, chars: int) -> None:
        """Until this tab shows so many characters, white space around them not counted."""
        while len(self.text(run).strip()) < chars:
            self.hear()

    def hear_end(self, run: str, timeout_s: float = 90.0) -> Frame:
        """Until the run's last event; returns it."""
        deadline = time.monotonic() + timeout_s
        while True:
            events = self.events(run)
            if events and events[-1]["kind"] in TERMINAL:
                return events[-1]
            self.hear(max(0.1, deadline - time.monotonic()))

    def numbered(self, run: str) -> list[tuple[int, Frame]]:
        return [
            (f["seq"], f["event"])
            for f in self.frames
            if f["type"] == "run.event" and f["run"] == run
        ]

    def events(self, run: str) -> list[Frame]:
        return [event for _, event in self.numbered(run)]

    def text(self, run: str) -> str:
        """What this tab shows."""
        return text_of(self.events(run))

    # --- REST -----------------------------------------------------------------------------------

    def change(self, method: str, path: str, **values: Any) -> httpx2.Response:
        """A request that changes something, with the token that a page would send."""
        headers = {
            "X-CSRFToken": self.client.cookies.get("vitrine_csrf") or "",
            "Content-Type": "application/json",
        }
        return self.client.request(method, path, content=json.dumps(values), headers=headers)

    def conversation(self, conversation_id: str) -> Frame:
        response = self.client.get(f"/api/conversations/{conversation_id}")
        assert response.status_code == 200, response.text
        value: Frame = response.json()
        return value

    def saved(self, accepted: Frame) -> Frame:
        """The answer's message as it is stored."""
        messages = self.conversation(accepted["conversation"]["id"])["messages"]
        found: Frame = next(m for m in messages if m["id"] == accepted["answer"]["id"])
        return found


def a_reader(site: Site, name: str) -> Iterator[Reader]:
    """A new user with an open tab, whose changes are taken for a page's."""
    reader = Reader.signed_up(site, name)
    with closing(reader.client), reader:
        reader.client.get("/")
        reader.client.headers["X-CSRFToken"] = reader.client.cookies["vitrine_csrf"]
        yield reader


def text_of(events: list[Frame]) -> str:
    """The text that a reader of these events sees."""
    text = ""
    for event in events:
        if event["kind"] == "delta" and event["part"] == "text":
            assert event["offset"] == len(text)
            text += event["text"]
        elif event["kind"] == "stopped":
            text = text[: event["chars"]]
    return text


def assert_gapless(numbered: list[tuple[int, Frame]], first: int = 1) -> None:
    assert [seq for seq, _ in numbered] == list(range(first, first + len(numbered)))


__all__ = ["Reader", "assert_gapless", "email_of", "text_of"]
