"""A chat socket that plays a script inside the page, for states that a real engine shows by chance.

The page is the real one from a real site; only its WebSocket and /api/conversations/<id> are ours.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, WebSocketRoute

NOW = "2026-11-20T10:24:00+00:00"
Frame = dict[str, Any]

USAGE = {"prompt_tokens": 96, "cached_tokens": 64, "completion_tokens": 412}
TIMINGS = {
    "queued_ms": 3.0,
    "prefill_ms": 61.0,
    "ttft_ms": 1900.0,
    "decode_ms": 6754.0,
    "tools_ms": 0.0,
    "total_ms": 8700.0,
}


def model(name: str, title: str, description: str, state: str = "ready", **more: Any) -> Frame:
    return {
        "name": name,
        "title": title,
        "description": description,
        "state": state,
        "detail": "",
        "progress": 1.0 if state == "ready" else 0.0,
        "context_tokens": 4096,
        "default": False,
        **more,
    }


MODELS = [
    model(
        "vitrine-small",
        "Vitrine small",
        "The small built-in model: small talk, arithmetic by its tools, answers from documents.",
        default=True,
    ),
    model("org/assistant-8b", "Assistant 8B", "General assistant, 8 billion parameters.", "cold"),
    model(
        "org/broken",
        "Broken 1B",
        "Does not load.",
        "failed",
        detail="The weights do not fit into memory.",
    ),
]


class ScriptedChat:
    """What the server would be: hears frames of the page and says what the test tells it to."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.heard: list[Frame] = []
        self.models = MODELS
        self.auto_accept = True
        self.messages: list[Frame] = []
        self.conversation: Frame | None = None
        self.on_send: Callable[[Frame], None] | None = None
        self.is_away = False
        self._socket: WebSocketRoute | None = None
        self._logs: dict[str, list[Frame]] = {}
        page.route_web_socket(re.compile(r"/ws/chat/"), self._connected)
        page.route(re.compile(r"/api/conversations/[^/?]+$"), self._read)

    def _connected(self, socket: WebSocketRoute) -> None:
        if self.is_away:
            socket.close(code=1013)
            return
        self._socket = socket
        socket.on_message(lambda data: self._hear(json.loads(data)))
        self.say({"type": "hello", "models": self.models})

    def _read(self, route: Route) -> None:
        if route.request.method != "GET" or self.conversation is None:
            route.fallback()
            return
        route.fulfill(json={"conversation": self.conversation, "messages": self.messages})

    def _hear(self, frame: Frame) -> None:
        self.heard.append(frame)
        if frame["type"] == "ping":
            self.say({"type": "pong"})
        if frame["type"] == "message.send" and self.auto_accept:
            self.accept(frame)
            if self.on_send:
                self.on_send(frame)

    def heard_of(self, kind: str) -> list[Frame]:
        return [frame for frame in self.heard if frame["type"] == kind]

    def say(self, frame: Frame) -> None:
        assert self._socket is not None
        self._socket.send(json.dumps(frame))

    def go_away(self, code: int = 1012) -> None:
        """Close the line, and each new one until `come_back`."""
        self.is_away = True
        assert self._socket is not None
        self._socket.close(code=code)

    def come_back(self) -> None:
        self.is_away = False

    # --- a conversation ---------------------------------------------------------------------

    def accept(self, sent: Frame) -> None:
        """Save the message and begin a run, as the server does."""
        number = len(self.messages) // 2 + 1
        conversation = self._conversation(title=sent["text"][:60])
        user = self.add("user", sent["text"], sent["parent"], f"u{number}")
        run = f"r{number}"
        answer = self.add("assistant", "", user["id"], f"a{number}", status="running", run=run)
        self.say(
            {
                "type": "message.accepted",
                "client_id": sent["client_id"],
                "conversation": conversation,
                "message": user,
                "answer": answer,
                "run": run,
            }
        )

    def add(self, role: str, text: str, parent: str | None, id: str, **more: Any) -> Frame:
        message = {
            "id": id,
            "conversation": self._conversation()["id"],
            "parent": parent,
            "role": role,
            "status": "complete",
            "text": text,
            "parts": [{"type": "text", "text": text}] if text else [],
            "model": "vitrine-small" if role == "assistant" else "",
            "run": None,
            "created_at": NOW,
            "finish_reason": "stop",
            "error": None,
            "usage": USAGE if role == "assistant" else None,
            "timings": TIMINGS if role == "assistant" else None,
            **more,
        }
        self.messages.append(message)
        return message

    def _conversation(self, title: str = "") -> Frame:
        if self.conversation is None:
            id = "0199a1b2-0000-7000-8000-000000000001"
            self.conversation = {
                "id": id,
                "url": f"/c/{id}",
                "title": title,
                "model": "vitrine-small",
                "version": 1,
                "created_at": NOW,
                "updated_at": NOW,
                "running": [],
            }
        return self.conversation

    # --- a run ------------------------------------------------------------------------------

    def phase(self, run: str, phase: str, **fields: Any) -> None:
        self.say({"type": "run.phase", "run": run, "phase": {"phase": phase, **fields}})

    def event(self, run: str, kind: str, **fields: Any) -> None:
        log = self._logs.setdefault(run, [])
        log.append({"kind": kind, **fields})
        self._say_event(run, len(log))

    def replay(self, run: str) -> None:
        """Every event again, as after `run.follow` from the start."""
        for seq in range(1, len(self._logs[run]) + 1):
            self._say_event(run, seq)

    def reset(self, run: str) -> None:
        """The log is lost, as after a crash of the database; what is written now counts from 1."""
        self._logs[run] = []
        self.say({"type": "run.reset", "run": run})

    def _say_event(self, run: str, seq: int) -> None:
        frame = {"type": "run.event", "run": run, "message": run.replace("r", "a"), "seq": seq}
        self.say({**frame, "event": self._logs[run][seq - 1]})

    def write(self, run: str, text: str, *, offset: int = 0, part: str = "text") -> None:
        self.event(run, "delta", part=part, offset=offset, text=text)

    def finish(self, run: str) -> None:
        self.event(run, "finished", reason="stop", usage=USAGE, timings=TIMINGS)
