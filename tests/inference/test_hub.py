"""Pulling from a hub: the real client against a stand-in for the network outside."""

import asyncio
import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import HFValidationError

from inference import Engine, EngineConfig, ModelRefused, ModelTooLarge, memory, nvml, placement
from inference.catalog import discover
from inference.encoder_layout import read_encoder_layout
from inference.hub import Pull, RemoteFile, plan_pull, pull, remove
from inference.hub_talk import HubError, talk, token_of
from inference.kinds import kind_at
from tests.engine_workers import engine_workers
from tests.inference.tiny_models import make_encoder

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
    assert not list(path.rglob("*.partial"))
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


def test_progress_ends_at_the_end_where_a_server_knows_no_ranges(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan, tmp_path)
    hub.break_after_bytes, hub.knows_ranges = None, False
    reports: list[int] = []
    pull(plan, tmp_path, progress=lambda done, total: reports.append(done))
    assert max(reports) == reports[-1] == plan.size_bytes


def test_two_pulls_of_a_model_leave_each_other_alone(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    problems: list[str] = []

    def pull_again(done_bytes: int, total_bytes: int) -> None:
        if not problems:
            for meanwhile in (lambda: pull(plan, tmp_path), lambda: remove(NAME, tmp_path)):
                with pytest.raises(HubError) as caught:
                    meanwhile()
                problems.append(str(caught.value))

    path = pull(plan, tmp_path, progress=pull_again)
    assert problems == ["org/tiny is being pulled by another process."] * 2
    assert _held(path) == _held(hub.folder)


def test_pulling_again_mends_what_was_damaged(hub: Hub, tmp_path: Path) -> None:
    path = pull(plan_pull(NAME, tmp_path), tmp_path)
    for name in ("model.safetensors", "tokenizer.json"):
        size = (path / name).stat().st_size
        (path / name).write_bytes(bytes(size))
        hub.sent.clear()
        reports: list[int] = []
        plan = plan_pull(NAME, tmp_path)
        pull(plan, tmp_path, progress=lambda done, total: reports.append(done))  # noqa: B023
        assert hub.sent == ["config.json", name], "the first was looked at"
        assert max(reports) == reports[-1] == plan.size_bytes
        assert _held(path) == _held(hub.folder)


def test_an_adapter_is_called_one(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "config.json").unlink()
    config = {"peft_type": "LORA", "base_model_name_or_path": "org/large"}
    (hub.folder / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(HubError, match=r"LoRA adapter of org/large\..*VITRINE_ADAPTERS"):
        plan_pull(NAME, tmp_path)


def test_a_link_is_not_followed_to_delete(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "org").mkdir()
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HubError, match="is a link"):
        remove(NAME, tmp_path)
    assert (tmp_path / "elsewhere").is_dir()


def test_a_damaged_file_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    weights = hub.folder / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(HubError, match="damaged"):
        pull(plan, tmp_path)
    assert NAME not in discover(EngineConfig(models_dir=tmp_path))
    assert not list((tmp_path / NAME).rglob("model.safetensors*"))


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "RepoNotFound", "no model org/tiny"),
        (403, "GatedRepo", "accept its terms"),
        (401, "RepoNotFound", "private"),
        (401, "Invalid credentials in Authorization header", "HF_TOKEN is not accepted"),
        (403, "", "HF_TOKEN is not accepted"),
        (403, "Access to this resource is disabled.", "closed org/tiny to everybody"),
        (429, "", "Try again later"),
        (500, "", "answered with an error of its own .500.. Try again later"),
        (418, "", "answered with an error"),
    ],
)
def test_the_hubs_no_is_explained(
    hub: Hub, tmp_path: Path, status: int, code: str, words: str
) -> None:
    hub.problem = (status, code)
    with pytest.raises(HubError, match=words):
        plan_pull(NAME, tmp_path)


@pytest.mark.parametrize("setting", ["hf_abc\u2011def", "hf_abc def", "hf_a\nb", "hf_\x7f"])
def test_a_token_that_is_none_is_refused_and_not_shown(setting: str) -> None:
    with pytest.raises(HubError, match="HF_TOKEN holds characters") as caught:
        token_of(setting)
    assert setting not in str(caught.value)


def test_a_token_is_what_stands_between_white_space() -> None:
    assert token_of(" hf_abc\n") == "hf_abc"
    assert token_of("\n") is None


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


def test_an_embedding_model_comes_with_what_stands_behind_it(hub: Hub, tmp_path: Path) -> None:
    shutil.rmtree(hub.folder)
    make_encoder(hub.folder, pooling="mean", max_seq_length=32)
    config = json.loads((hub.folder / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]  # served for its modules.json alone
    (hub.folder / "config.json").write_text(json.dumps(config))
    (hub.folder / "2_Dense").mkdir()
    for name in ("2_Dense/model.safetensors", "2_Dense/config.json", "1_Pooling/evil.bin"):
        (hub.folder / name).write_bytes(b"{}")
    (hub.folder / "onnx").mkdir()
    (hub.folder / "onnx" / "model.safetensors").write_bytes(b"not wanted")
    plan = plan_pull(NAME, tmp_path)
    assert plan.weights_bytes == (hub.folder / "model.safetensors").stat().st_size
    path = pull(plan, tmp_path)
    assert kind_at(path) == "embedding"
    assert read_encoder_layout(path).window_tokens == 32
    assert {f.name for f in (path / "1_Pooling").iterdir()} == {"config.json"}
    assert (path / "2_Dense" / "model.safetensors").read_bytes() == b"{}"
    assert not (path / "onnx").exists()


def test_weights_that_are_there_a_second_time_are_left(hub: Hub, tmp_path: Path) -> None:
    weights = hub.folder / "model.safetensors"
    (hub.folder / "consolidated.safetensors").write_bytes(weights.read_bytes())
    (hub.folder / "consolidated.safetensors.index.json").write_text("{}")
    plan = plan_pull(NAME, tmp_path)
    assert plan.weights_bytes == weights.stat().st_size
    assert not list(pull(plan, tmp_path).glob("consolidated*"))


def test_a_model_larger_than_memory_is_not_fetched(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.num_weights = {"BF16": 2**20}
    assert not plan_pull(NAME, tmp_path).warning
    with pytest.raises(ModelTooLarge):
        plan_pull(NAME, tmp_path, memory_bytes=1000)
    monkeypatch.setattr(memory, "loadable_bytes", lambda: 1000)  # a smaller machine
    with pytest.raises(ModelTooLarge):
        plan_pull(NAME, tmp_path)


def test_a_model_is_measured_as_it_is_loaded(hub: Hub, tmp_path: Path) -> None:
    """Not as its files are: with 16 bits for each weight there, a processor that multiplies no bfloat16
    needs twice as much, and one that does half of what files of 32 bits take."""
    hub.num_weights = {"BF16": 2**20, "F32": 2**10}
    weights = 2**20 + 2**10
    for dtype, size in (("float32", 4), ("bfloat16", 2)):
        needed = int(weights * size * 1.15)
        plan_pull(NAME, tmp_path, memory_bytes=needed, dtype=dtype)
        with pytest.raises(ModelTooLarge) as caught:
            plan_pull(NAME, tmp_path, memory_bytes=needed - 1, dtype=dtype)
        assert caught.value.needed_bytes == needed


def test_where_it_is_uncertain_whether_a_model_fits_somebody_is_warned(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "loadable_bytes", lambda: 1000)
    for num_weights in (None, {"I32": 2**20, "F16": 2**10}):
        hub.num_weights = num_weights
        assert "GiB of memory" in plan_pull(NAME, tmp_path).warning
    hub.num_weights = {"BF16": 2**20}
    assert "GiB of memory" in plan_pull(NAME, tmp_path, on_gpu=True).warning
    monkeypatch.setattr(memory, "loadable_bytes", lambda: 2**30)
    assert not plan_pull(NAME, tmp_path, on_gpu=True, memory_bytes=1000).warning


def test_gpus_are_sought_as_the_worker_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = EngineConfig(tmp_path)
    for driver, is_there in ((tmp_path, True), (tmp_path / "none", False)):
        monkeypatch.setattr(nvml, "_DRIVER", driver)
        monkeypatch.setattr(placement, "_has_cuda", lambda: True)
        assert placement.computes_on_gpu(config) == is_there
        assert placement.computes_on_gpu(replace(config, device="cuda"))
        assert not placement.computes_on_gpu(replace(config, device="cpu"))


async def test_what_models_take_that_can_sleep_is_there_for_one_that_is_pulled(
    hub: Hub, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = engine_workers()  # of other tests' sites
    engine.load("tiny")
    while engine.state("tiny").state != "ready":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    monkeypatch.setattr(memory, "available_bytes", lambda: 0)
    (worker,) = (worker for worker in engine_workers() if worker not in others)
    own_bytes = memory._own_bytes(Path(f"/proc/{worker.pid}"))
    assert 2**20 < own_bytes < worker.memory_info().rss
    assert memory.loadable_bytes() >= own_bytes
    assert memory.own_loadable_bytes() >= own_bytes
    assert not plan_pull(NAME, tmp_path).warning


def test_only_pickled_weights_are_not_enough(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").unlink()
    with pytest.raises(HubError, match="no safetensors"):
        plan_pull(NAME, tmp_path)


def test_gguf_files_are_told_how_to_become_a_model(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").rename(hub.folder / "model-Q8_0.gguf")
    with pytest.raises(HubError, match="python -m inference import"):
        plan_pull(NAME, tmp_path)


NO_NAMES = [
    *("", "x", "a/b/c", "../x", "/etc/passwd", "a/..", "org/.", "org/", "/x", "./x", "org/-x"),
    *("org/x.", "org/a..b", "org/a--b", "org/x.git", "or g/x", "org/a b", "org/ä", "org/x\n"),
    *("org/a\x00", "org\\x/y", "~/x", "org/" + "x" * 97, "https://huggingface.co/org/x"),
]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / "org" / "other").mkdir(parents=True)
    with pytest.raises(HubError, match="no model name"):
        plan_pull(name, tmp_path)
    with pytest.raises(HubError, match="no model name"):
        remove(name, tmp_path)
    assert (tmp_path / "org" / "other").is_dir()


@pytest.mark.parametrize("name", ["org/x", "Qwen/Qwen2.5-0.5B_v1", "a/b", "o/" + "x" * 96])
def test_a_name_that_is_one(name: str, tmp_path: Path) -> None:
    assert not remove(name, tmp_path)


def test_a_name_that_only_the_client_refuses_is_explained() -> None:
    def ask() -> None:
        raise HFValidationError("Repo id must be kind.")

    with pytest.raises(HubError, match="knows no such name: Repo id must be kind"):
        talk(NAME, ask)


@pytest.mark.parametrize(
    "file", ["../../../escaped/evil.json", "/tmp/evil.json", "a/../../evil.json", "a\x00b.json"]
)
def test_a_file_that_would_leave_the_models_directory_is_refused(
    hub: Hub, tmp_path: Path, file: str
) -> None:
    models_dir = tmp_path / "deep" / "models"
    hub.more_siblings = [{"rfilename": file, "size": 5}]
    with pytest.raises(HubError, match="would leave its directory"):
        plan_pull(NAME, models_dir)
    with pytest.raises(HubError, match="would leave its directory"):
        pull(Pull(NAME, SHA, (RemoteFile(file, 5),)), models_dir)
    assert not [f for f in tmp_path.rglob("*evil*") if hub.folder not in f.parents]
    assert not Path("/tmp/evil.json").exists()


def test_a_directory_on_another_disk_is_inside(hub: Hub, tmp_path: Path) -> None:
    models_dir, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    (models_dir / "org").mkdir(parents=True)
    elsewhere.mkdir()
    (models_dir / NAME).symlink_to(elsewhere)
    pull(plan_pull(NAME, models_dir), models_dir)
    assert (elsewhere / "config.json").exists()


def test_a_full_disk_is_called_one(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    (tmp_path / NAME).mkdir(parents=True)
    # What the kernel has for this purpose: writing to it says that no space is left.
    (tmp_path / NAME / f"model.safetensors.{SHA[:12]}.partial").symlink_to("/dev/full")
    with pytest.raises(HubError, match="disk is full"):
        pull(plan, tmp_path)
    assert NAME not in discover(EngineConfig(models_dir=tmp_path))


def test_a_directory_that_cannot_be_written_is_named(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    (tmp_path / NAME).parent.mkdir()
    (tmp_path / NAME).write_text("a file in the way")
    with pytest.raises(HubError, match=r"org/tiny cannot be written \("):
        pull(plan, tmp_path)


# --- another revision ------------------------------------------------------------------------------


def _commit(hub: Hub) -> dict[str, bytes]:
    """A newer revision: weights and settings of the same size as before, one file less, one more."""
    weights = hub.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-400] + bytes(400))
    settings = hub.folder / "tokenizer_config.json"
    settings.write_bytes(settings.read_bytes()[:-1] + b" ")
    (hub.folder / "chat_template.jinja").unlink()
    (hub.folder / "added.json").write_text("{}")
    hub.sha = NEWER
    hub.sent.clear()
    return _held(hub.folder)


def _held(folder: Path) -> dict[str, bytes]:
    """The files of a model by name; what is hidden or never wanted aside."""
    files = [f for f in folder.rglob("*") if f.is_file() and f.suffix != ".bin"]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.name[0] != "."}


@pytest.fixture
def pulled(hub: Hub, tmp_path: Path) -> Path:
    models_dir = tmp_path / "models"
    return pull(plan_pull(NAME, models_dir), models_dir)


def test_a_newer_revision_replaces_the_older_one_whole(
    hub: Hub, pulled: Path, tmp_path: Path
) -> None:
    newer = _commit(hub)
    models_dir = tmp_path / "models"
    pull(plan_pull(NAME, models_dir), models_dir)
    assert _held(pulled) == newer
    hub.sent.clear()
    pull(plan_pull(NAME, models_dir), models_dir)
    assert set(hub.sent) == {"config.json"}, "only looked at: all of it is there"


def test_large_files_that_did_not_change_are_not_fetched_again(
    hub: Hub, pulled: Path, tmp_path: Path
) -> None:
    (hub.folder / "tokenizer_config.json").write_text("{}")
    hub.sha = NEWER
    hub.sent.clear()
    pull(plan_pull(NAME, tmp_path / "models"), tmp_path / "models")
    assert _held(pulled) == _held(hub.folder)
    assert "model.safetensors" not in hub.sent


def test_the_older_revision_stays_until_the_newer_one_is_there(
    hub: Hub, pulled: Path, tmp_path: Path
) -> None:
    models_dir = tmp_path / "models"
    older = _held(pulled)
    newer = _commit(hub)
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan_pull(NAME, models_dir), models_dir)
    assert {name: older[name] for name in older} == {
        name: content for name, content in _held(pulled).items() if ".partial" not in name
    }
    hub.break_after_bytes = None
    hub.ranges.clear()
    pull(plan_pull(NAME, models_dir), models_dir)
    assert hub.ranges, "and what had arrived was not fetched twice"
    assert _held(pulled) == newer


def test_a_half_fetched_file_is_not_completed_from_another_revision(
    hub: Hub, tmp_path: Path
) -> None:
    models_dir = tmp_path / "models"
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan_pull(NAME, models_dir), models_dir)
    hub.break_after_bytes = None
    newer = _commit(hub)
    path = pull(plan_pull(NAME, models_dir), models_dir)
    assert _held(path) == newer


def test_files_of_unknown_origin_are_looked_into(hub: Hub, pulled: Path, tmp_path: Path) -> None:
    (pulled / ".pulled").unlink()
    weights = pulled / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    pull(plan_pull(NAME, tmp_path / "models"), tmp_path / "models")
    assert _held(pulled) == _held(hub.folder)
