"""Pulling from a hub: the real client against a stand-in for the network outside."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inference import EngineConfig, ModelRefused, ModelTooLarge, memory
from inference.catalog import discover
from inference.hub import HubError, plan_pull, pull, remove

NAME = "org/tiny"
SHA = "a" * 40


class Hub(ThreadingHTTPServer):
    """Speaks as much of the hub's HTTP as the client asks of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.problem: tuple[int, str] | None = None
        self.break_after_bytes: int | None = None
        self.sent: list[str] = []
        self.ranges: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def info(self) -> dict[str, Any]:
        files = [f for f in sorted(self.folder.rglob("*")) if f.is_file()]
        siblings = [_sibling(f, str(f.relative_to(self.folder))) for f in files]
        return {"id": NAME, "modelId": NAME, "sha": SHA, "siblings": siblings, "tags": []}


def _sibling(file: Path, name: str) -> dict[str, Any]:
    value: dict[str, Any] = {"rfilename": name, "size": file.stat().st_size}
    if name.endswith(".safetensors"):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        value["lfs"] = {"sha256": digest, "size": value["size"], "pointerSize": 134}
    return value


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
            self._send_file(
                self.path.partition(f"/resolve/{SHA}/")[2] or self.path.rpartition("/")[2]
            )

    def _send_file(self, name: str) -> None:
        file = self.server.folder / name
        if not file.is_file():
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, True)
            return
        body, status = file.read_bytes(), 200
        headers = {"X-Repo-Commit": SHA, "ETag": f'"{len(body):040x}"', "Accept-Ranges": "bytes"}
        if self.command == "GET":
            self.server.sent.append(name)
            start = 0
            wanted = self.headers.get("Range", "")
            if wanted.startswith("bytes=") and wanted != "bytes=0-":
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


@pytest.fixture
def hub(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    import shutil

    import huggingface_hub.constants as constants
    from huggingface_hub import file_download, hf_api

    folder = tmp_path / "hub"
    shutil.copytree(tiny_model, folder)
    (folder / "pytorch_model.bin").write_bytes(b"never wanted")
    with Hub(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # The network outside: where the client finds its hub, and how patiently it retries.
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(hf_api.api, "endpoint", server.url)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            server.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 2**14)
        monkeypatch.setattr(file_download.time, "sleep", lambda seconds: None)
        yield server
        server.shutdown()


def test_a_pulled_model_is_in_the_catalogue(hub: Hub, tmp_path: Path, tiny_model: Path) -> None:
    models_dir = tmp_path / "models"
    reports: list[tuple[int, int]] = []
    plan = plan_pull(NAME, models_dir)
    assert plan.revision == SHA
    path = pull(plan, models_dir, progress=lambda done, total: reports.append((done, total)))
    weights = "model.safetensors"
    assert (path / weights).read_bytes() == (tiny_model / weights).read_bytes()
    assert not (path / "pytorch_model.bin").exists()
    assert hub.sent[-1] == "config.json", "it marks the model as whole"
    assert NAME in discover(EngineConfig(models_dir=models_dir))
    assert reports
    assert reports[-1][0] <= reports[-1][1] == plan.size_bytes
    assert remove(NAME, models_dir)
    assert NAME not in discover(EngineConfig(models_dir=models_dir))
    assert not remove(NAME, models_dir)


def test_an_interrupted_pull_is_no_model_and_goes_on(hub: Hub, tmp_path: Path) -> None:
    models_dir = tmp_path / "models"
    plan = plan_pull(NAME, models_dir)
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan, models_dir)
    assert NAME not in discover(EngineConfig(models_dir=models_dir))
    hub.break_after_bytes = None
    hub.ranges.clear()
    path = pull(plan, models_dir)
    assert hub.ranges, "the second try asked for the rest only"
    assert (path / "model.safetensors").stat().st_size == plan.weights_bytes


def test_a_damaged_file_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    weights = hub.folder / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(HubError, match="damaged"):
        pull(plan, tmp_path)
    assert NAME not in discover(EngineConfig(models_dir=tmp_path))
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "RepoNotFound", "no model org/tiny"),
        (403, "GatedRepo", "accept its terms"),
        (401, "RepoNotFound", "private"),
        (500, "", "answered with an error"),
    ],
)
def test_the_hubs_no_is_explained(
    hub: Hub, tmp_path: Path, status: int, code: str, words: str
) -> None:
    hub.problem = (status, code)
    with pytest.raises(HubError, match=words):
        plan_pull(NAME, tmp_path)


def test_no_network_is_said(hub: Hub, tmp_path: Path) -> None:
    hub.shutdown()
    hub.server_close()
    with pytest.raises(HubError, match="cannot be reached"):
        plan_pull(NAME, tmp_path)


def test_a_model_that_cannot_be_served_is_not_fetched(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "config.json").write_text(json.dumps({"architectures": ["BertForMaskedLM"]}))
    with pytest.raises(ModelRefused, match="no causal language model"):
        plan_pull(NAME, tmp_path)
    assert hub.sent == ["config.json"]


def test_a_model_larger_than_memory_is_not_fetched(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)  # a smaller machine
    with pytest.raises(ModelTooLarge):
        plan_pull(NAME, tmp_path)


def test_only_pickled_weights_are_not_enough(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").unlink()
    with pytest.raises(HubError, match="no safetensors"):
        plan_pull(NAME, tmp_path)


@pytest.mark.parametrize("name", ["x", "a/b/c", "../x", "/etc/passwd", "a/..", ""])
def test_a_name_that_is_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="no model name"):
        plan_pull(name, tmp_path)
