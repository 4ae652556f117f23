"""A model hub, as far as its client sees of it: serves a folder, breaks off, refuses."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = "org/tiny"


SHA = "a" * 40


NEWER = "b" * 40


class Hub(ThreadingHTTPServer):
    """Speaks as much of the hub's HTTP as the client asks of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.sha = SHA
        self.num_weights: dict[str, int] | None = None
        self.more_siblings: list[dict[str, Any]] = []
        self.problem: tuple[int, str] | None = None
        self.break_after_bytes: int | None = None
        self.knows_ranges = True
        self.sent: list[str] = []
        self.ranges: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def info(self) -> dict[str, Any]:
        files = [f for f in sorted(self.folder.rglob("*")) if f.is_file()]
        siblings = [_sibling(f, str(f.relative_to(self.folder))) for f in files]
        siblings += self.more_siblings
        told = {"id": NAME, "modelId": NAME, "sha": self.sha, "siblings": siblings, "tags": []}
        if self.num_weights is not None:
            total = sum(self.num_weights.values())
            told["safetensors"] = {"parameters": self.num_weights, "total": total}
        return told


def _sibling(file: Path, name: str) -> dict[str, Any]:
    value: dict[str, Any] = {"rfilename": name, "size": file.stat().st_size}
    if name.endswith(".safetensors"):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        value["lfs"] = {"sha256": digest, "size": value["size"], "pointerSize": 134}
    blob = b"blob %d\0" % value["size"] + file.read_bytes()
    return value | {"blobId": hashlib.sha1(blob).hexdigest()}


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        if self.server.problem is not None:
            status, code = self.server.problem
            self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code}, with_body)
        elif self.path.startswith("/api/models/"):
            self._send(200, json.dumps(self.server.info()).encode(), {}, with_body)
        else:
            self._send_file(self.path.partition(f"/resolve/{self.server.sha}/")[2])

    def _send_file(self, name: str) -> None:
        file = self.server.folder / name
        if not file.is_file():
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, True)
            return
        body, status = file.read_bytes(), 200
        headers = {
            "X-Repo-Commit": self.server.sha,
            "ETag": f'"{len(body):040x}"',
            "Accept-Ranges": "bytes",
        }
        if self.command == "GET":
            self.server.sent.append(name)
            start = 0
            wanted = self.headers.get("Range", "")
            if self.server.knows_ranges and wanted.startswith("bytes=") and wanted != "bytes=0-":
                self.server.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").partition("-")[0])
                headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
                body, status = body[start:], 206
            limit = self.server.break_after_bytes
            if limit is not None and name.endswith(".safetensors"):
                self._send_head(status, len(body), headers)
                self.wfile.write(body[: max(0, limit - start)])
                self.close_connection = True
                return
        self._send(status, body, headers, self.command == "GET")

    def _send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self._send_head(status, len(body), headers)
        if with_body:
            self.wfile.write(body)

    def _send_head(self, status: int, size: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def held(folder: Path) -> dict[str, bytes]:
    """The files of a model by name; what is hidden or never wanted aside."""
    files = [f for f in folder.rglob("*") if f.is_file() and f.suffix != ".bin"]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.name[0] != "."}
