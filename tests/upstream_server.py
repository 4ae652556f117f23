"""Another company's server, as far as Vitrine sees of it: says over HTTP what a test has written."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Asked:
    """One request that came. `body` is empty where it was no JSON; `raw` is as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes = b""

    @property
    def asks_for_title(self) -> bool:
        from chat.titles import REQUEST  # not earlier: it needs Django's settings

        messages = self.body.get("messages") or [{}]
        return messages[-1].get("content") == REQUEST

    def header(self, name: str) -> str:
        return {key.lower(): value for key, value in self.headers.items()}[name]


@dataclass
class UpstreamServer:
    """`answers` are given in order, the last one for ever; `asked` are the requests so far.

    A chat asks for its title when it likes, perhaps while the next test's answers are said: with `title`
    it is told that, and nothing is noted.
    """

    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    title: Answer | None = None

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def _answer_to(self, asked: Asked) -> Answer:
        if self.title is not None and asked.asks_for_title:
            return self.title
        with self._lock:
            self.asked.append(asked)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._take(b"", {})

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                is_form = self.headers["Content-Type"].startswith("multipart/")
                self._take(raw, {} if is_form else json.loads(raw))

            def _take(self, raw: bytes, body: dict[str, Any]) -> None:
                asked = Asked(self.path, dict(self.headers.items()), body, raw)
                try:
                    upstream._answer_to(asked)(self)
                except OSError:
                    self.close_connection = True  # the client has hung up

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def status(code: int, body: Any = None, **headers: str) -> Answer:
    """An HTTP error."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        data = json.dumps(body).encode() if body is not None else b""
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def stream(
    *pieces: str,
    pause_s: float = 0.0,
    is_cut: bool = False,
    hangs_s: float = 0.0,
    kind: str = "text/event-stream",
) -> Answer:
    """A stream of server-sent events, as it is on the wire.

    `is_cut`: the connection ends without a word. `hangs_s`: silence at the end. `kind`: of content;
    "" where the server names none.
    """

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if kind:
            handler.send_header("Content-Type", kind)
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(piece.encode())
            handler.wfile.flush()
            time.sleep(pause_s)
        time.sleep(hangs_s)
        handler.close_connection = True
        if is_cut:
            handler.connection.shutdown(2)

    return answer


def wired(*data: Any) -> list[str]:
    """Events on the wire: texts as they are, all else as JSON."""
    written = (value if isinstance(value, str) else json.dumps(value) for value in data)
    return [f"data: {text}\n\n" for text in written]


def events(*data: Any, pause_s: float = 0.0, is_cut: bool = False, hangs_s: float = 0.0) -> Answer:
    """`stream` of `wired` data."""
    return stream(*wired(*data), pause_s=pause_s, is_cut=is_cut, hangs_s=hangs_s)


def chunk(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def texts(*pieces: str, reason: str = "stop") -> list[Any]:
    """A whole answer of OpenAI's protocol: its pieces, its end and what it took."""
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": len(pieces),
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    content: Iterable[Any] = (chunk(content=piece) for piece in pieces)
    return [*content, chunk(reason), {"choices": [], "usage": usage}, "[DONE]"]
