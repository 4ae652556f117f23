"""A chat socket that plays a script inside the page, for states that a real engine shows by chance.

The page is the real one from a real site; only its WebSocket and /api/conversations/<id> are ours.
"""

import json
import re
from collections.abc import Callable
from math import log
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
    "engine_ms": 812.0,
}


def _span(kind: str, start_ms: float, end_ms: float, **facts: Any) -> Frame:
    return {"kind": kind, "start_ms": start_ms, "end_ms": end_ms, "facts": facts}


TRACE = {
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "status": "complete",
    "model": "vitrine-small",
    "revision": "9c1f2a7be0d4",
    "finish_reason": "stop",
    "error": None,
    "attempts": 1,
    "created_at": NOW,
    "total_ms": 8690.0,
    "first_token_ms": 1900.0,
    "usage": {"prompt_tokens": 8900, "cached_tokens": 5100, "completion_tokens": 412},
    "timings": TIMINGS,
    "engine_ms": 6120.0,
    "cost": {"amount": "0.00412000", "currency": "EUR"},
    "spans": [
        _span("accepted", 0, 11),
        _span("prompt", 11, 24, turn=0, tokens=8900),
        _span("queued", 24, 890, turn=0, position=3),
        _span("prefill", 890, 1900, turn=0, tokens=8900, cached=5100),
        _span("decode", 1900, 4200, turn=0, tokens=140),
        _span("tool", 4200, 4460, name="calculator", is_error=False),
        _span("prefill", 4460, 4540, turn=1, tokens=9060, cached=9040),
        _span("decode", 4540, 8680, turn=1, tokens=272),
        _span("saved", 8680, 8690),
    ],
    "turns": [
        {
            "index": 0,
            "prompt_tokens": 8900,
            "params": {"seed": "5577006791947779410", "temperature": 0.7},
        }
    ],
}


def meter_of(history: int, draft: int, **more: Any) -> Frame:
    """The answer of POST /api/meter for a context of 4,096 tokens."""
    parts = {"system": 310, "memory": 84, "history": history, "draft": draft}
    return {
        "model": "vitrine-small",
        "context_tokens": 4096,
        "prompt_tokens": sum(parts.values()),
        "reserve_tokens": 1024,
        "segments": [{"name": name, "tokens": tokens} for name, tokens in parts.items()],
        "left_out": None,
        "is_too_long": False,
        **more,
    }


def tokens_of(text: str) -> Frame:
    """The answer of …/tokens: words and marks as tokens, some of them more surprising than others."""
    pieces = re.findall(r"\s?\w+|\s*\W", text)
    chances = (0.97, 0.62, 0.999, 0.3, 0.9, 0.08, 0.99, 0.004)

    def token(number: int, piece: str) -> Frame:
        logprob = log(chances[number % len(chances)])
        top = [{"id": number, "text": piece, "logprob": logprob, "is_mark": False}]
        for other, share in enumerate((0.5, 0.2, 0.1, 0.04)):
            rest = log(share * (1.001 - chances[number % len(chances)]))
            word = (" memory", " tokens", " a", "\n")[other]
            top.append({"id": 9000 + other, "text": word, "logprob": rest, "is_mark": False})
        top.sort(key=lambda each: -each["logprob"])
        return {"id": number, "text": piece, "logprob": logprob, "top": top}

    tokens = [token(number, piece) for number, piece in enumerate(pieces)]
    return {"model": "vitrine-small", "revision": "1", "turns": [{"index": 0, "tokens": tokens}]}


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
        self.saved: list[Frame] = []
        self._socket: WebSocketRoute | None = None
        self._logs: dict[str, list[Frame]] = {}
        page.route_web_socket(re.compile(r"/ws/chat/"), self._connected)
        page.route(re.compile(r"/line/"), lambda route: route.abort())  # the way around the socket
        page.route(re.compile(r"/api/conversations/[^/?]+$"), self._read)
        page.route(
            re.compile(r"/api/messages/[^/]+/trace$"), lambda route: route.fulfill(json=TRACE)
        )
        page.route("**/api/personalisation", self._keep)
        self.meter: Frame | None = None
        page.route(re.compile(r"/api/meter$"), self._measure)
        self.tokens = tokens_of("So long.")
        page.route(
            re.compile(r"/api/messages/[^/]+/tokens$"),
            lambda route: route.fulfill(json=self.tokens),
        )

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

    def _keep(self, route: Route) -> None:
        """What the page has the account keep; nothing reaches the reader that all tests share."""
        if route.request.method == "GET":
            route.fallback()
            return
        self.saved.append(route.request.post_data_json)
        route.fulfill(json={})

    def _measure(self, route: Route) -> None:
        """As the script says; without a word there is no such chat."""
        if self.meter is None:
            route.fulfill(status=404, json={"error": {"code": "not_found", "message": "None."}})
        else:
            route.fulfill(json=self.meter)

    def _hear(self, frame: Frame) -> None:
        self.heard.append(frame)
        if frame["type"] == "ping":
            self.say({"type": "pong"})
        if frame["type"] == "message.send" and self.auto_accept:
            self.accept(frame)
            if self.on_send:
                self.on_send(frame)
        if frame["type"] in ("answer.regenerate", "answer.continue") and self.auto_accept:
            self.accept_again(frame)

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
        number = self._num_answers + 1
        conversation = self._conversation(title=sent["text"][:60])
        version = self._touch()
        user = self.add("user", sent["text"], sent["parent"], f"u{number}", chosen=version)
        models = [sent["model"] or self.models[0]["name"], *sent.get("beside", [])]
        answers = [self._begin(user["id"], model, version) for model in models]
        self.say(
            {
                "type": "message.accepted",
                "client_id": sent["client_id"],
                "conversation": conversation,
                "message": user,
                "answer": answers[0],
                "answers": answers,
                "run": answers[0]["run"],
            }
        )

    def accept_again(self, frame: Frame) -> None:
        """Begin another answer beside one that is there."""
        before = next(m for m in self.messages if m["id"] == frame["answer"])
        model = frame.get("model") or before["model"]
        answer = self._begin(before["parent"], model, self._touch())
        self.say(
            {
                "type": "answer.accepted",
                "client_id": frame["client_id"],
                "conversation": self._conversation(),
                "answer": answer,
                "run": answer["run"],
            }
        )

    def accept_temporary(self, text: str) -> None:
        """The whole answer to the last question of a temporary chat."""
        client_id = self.heard_of("temporary.send")[-1]["client_id"]
        self.say({"type": "temporary.accepted", "client_id": client_id, "run": "t1"})
        self.write("t1", text)
        self.finish("t1")

    def _begin(self, question: str, model: str, version: int) -> Frame:
        number = self._num_answers + 1
        more = {"status": "running", "run": f"r{number}", "model": model, "chosen": version}
        return self.add("assistant", "", question, f"a{number}", **more)

    @property
    def _num_answers(self) -> int:
        return sum(message["role"] == "assistant" for message in self.messages)

    def _touch(self) -> int:
        version: int = self._conversation()["version"] + 1
        self._conversation()["version"] = version
        return version

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
            "chosen": self._conversation()["version"],
            "edited": False,
            "resumed": False,
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
                "folder": None,
                "tags": [],
                "pinned": False,
                "archived": False,
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
