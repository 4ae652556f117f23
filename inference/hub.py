"""Pulling models from the hub: looked at before the download, resumable, with sentences for errors.

A model's directory holds the files of one revision. What a pull fetches waits beside them, under
names that carry its revision, until all of it has arrived.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inference import memory
from inference.adapter_config import CONFIG_FILE as ADAPTER_CONFIG
from inference.adapter_config import read_base_name
from inference.errors import ModelTooLarge
from inference.hub_talk import FULL, HubError, cause_of, is_full, talk
from inference.kinds import MODULES_FILE, ModelKind, read_kind
from inference.needs import WEIGHTS_OVERHEAD, bytes_of_weight
from inference.pull_lock import held_alone

# Only what serving needs. Pickled weights are not among it: opening them can run code.
WANTED = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja", "*.txt", "*.model"]
# Mistral's repositories hold the same weights a second time, as consolidated.safetensors.
UNWANTED = ["original/*", "onnx/*", "openvino/*", "*/*.safetensors", "consolidated*"]
# Of an embedding model, what stands behind the transformer: 1_Pooling, 2_Dense, 3_Normalize.
_MODULE = re.compile(r"[1-9]_[A-Za-z]+/(config\.json|model\.safetensors)")
_PLAIN_DTYPES = frozenset({"F64", "F32", "F16", "BF16"})  # of which each element is a weight
_CONFIG = "config.json"
_RECORD = ".pulled"  # the revision that a directory holds, then its files, a line each
# The hub's own rule for names. It rules out all that a path could take for something else.
_NAME = re.compile(r"(?!.*(--|\.\.|\.git$))\w([\w.-]{0,94}\w)?/\w([\w.-]{0,94}\w)?", flags=re.ASCII)

_HASHED_AT_ONCE = 2**20

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""
Report = Callable[[int], None]
"""Called with the bytes that are done more than before; fewer than none where some were no good."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """`sha256` is known for large files, for the others git's hash of what they hold, or neither."""

    name: str
    size_bytes: int
    sha256: str | None = None
    blob_sha1: str | None = None

    @property
    def digest(self) -> str | None:
        return self.sha256 or self.blob_sha1

    def new_hash(self) -> "hashlib._Hash":
        """What makes the digest of the file's bytes."""
        if self.sha256:
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size_bytes, usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class Pull:
    """What a pull would bring; config.json is the last of its files.

    `warning` says what may keep the model from being served here; often nothing.
    """

    name: str
    revision: str
    files: tuple[RemoteFile, ...]
    warning: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def weights_bytes(self) -> int:
        """Of the model itself; a layer behind an embedding's pooling is small, and no model."""
        own = (f for f in self.files if "/" not in f.name and f.name.endswith(".safetensors"))
        return sum(f.size_bytes for f in own)


def plan_pull(
    name: str,
    models_dir: Path,
    token: str | None = None,
    *,
    memory_bytes: int | None = None,
    dtype: str = "auto",
    on_gpu: bool = False,
) -> Pull:
    """Look at a model on the hub before anything large is fetched.

    Its weights, in `dtype`, have to fit into `memory_bytes`, or, without that, into what is free while
    all models sleep. What does not is a warning where the hub tells no number of weights, and of a chat
    model that goes through this memory on its way to a GPU.
    Raises HubError (no network, unknown, gated, no safetensors, disk), ModelRefused (an architecture
    that cannot be served) or ModelTooLarge (memory).
    """
    from huggingface_hub import HfApi

    _check_name(name)
    info = talk(name, lambda: HfApi().model_info(name, files_metadata=True, token=token))
    files = [
        RemoteFile(s.rfilename, s.size or 0, *((s.lfs.sha256,) if s.lfs else (None, s.blob_id)))
        for s in info.siblings or []
        if _is_wanted(s.rfilename)
    ]
    files.sort(key=lambda file: file.name == _CONFIG)
    plan = Pull(name, info.sha or "main", tuple(files))
    names = {s.rfilename for s in info.siblings or []}
    if ADAPTER_CONFIG in names and _CONFIG not in names:
        raise HubError(_about_adapter(plan, token))
    if not plan.weights_bytes:
        raise HubError(f"{name} has no safetensors weights; {_other_weights(info.siblings or [])}")
    for file in plan.files:
        _target(models_dir / name, file.name)
    kind = _kind(plan, token)
    is_on_gpu = on_gpu and kind == "chat"
    num_weights = _num_weights(info.safetensors)
    try:
        _check_memory(plan, num_weights, memory_bytes, dtype, on_gpu=is_on_gpu)
    except ModelTooLarge as error:
        if num_weights is not None and not is_on_gpu:
            raise
        plan = replace(plan, warning=str(error))
    _check_disk(plan, models_dir)
    return plan


def _about_adapter(plan: Pull, token: str | None) -> str:
    with TemporaryDirectory(prefix="vitrine-pull-") as directory:
        _download_small(plan, ADAPTER_CONFIG, directory, token)
        base = read_base_name(Path(directory))
    return (
        f"{plan.name} is a LoRA adapter of {base or 'a model that it does not name'}. Fetch it by"
        f" `hf download {plan.name} --local-dir DIRECTORY`, and name it in VITRINE_ADAPTERS."
    )


def _other_weights(siblings: list[Any]) -> str:
    if any(s.rfilename.endswith(".gguf") for s in siblings):
        return (
            "of its GGUF files, fetch one and make a model out of it by"
            " `python -m inference import FILE.gguf`."
        )
    return "other formats are not loaded."


def pull(
    plan: Pull, models_dir: Path, token: str | None = None, progress: Progress | None = None
) -> Path:
    """Download a model to `models_dir`/ORG/MODEL. An interrupted pull goes on within the file.

    A model of an older revision stays as it is until all files of the new one have arrived.
    Raises HubError.
    """
    path = models_dir / plan.name
    done_bytes = 0

    def report(num_bytes: int) -> None:
        nonlocal done_bytes
        done_bytes += num_bytes
        if progress is not None:
            progress(done_bytes, plan.size_bytes)

    with _disk_errors_explained(path):
        path.mkdir(parents=True, exist_ok=True)
        with held_alone(path, plan.name):
            _bring(plan, path, token, report)
    return path


def _bring(plan: Pull, path: Path, token: str | None, report: Report) -> None:
    """Fetch what is not there, and put it in place once all of it has arrived.

    Where all is there already, somebody who pulls it again may doubt it: hashes are compared.
    """
    _drop_partials(plan, path)
    is_same_revision = _read_record(path)[0] == plan.revision
    is_complete = all(_has_size(file, _target(path, file.name)) for file in plan.files)
    arrived = []
    for file in plan.files:
        target = _target(path, file.name)
        if is_same_revision and not is_complete:
            is_held = _has_size(file, target)
            report(file.size_bytes if is_held else 0)
        else:
            is_held = _is_known(file, is_same_revision) and _is_whole(target, file, report)
        if not is_held:
            _fetch(plan, file, target, token, report)
            arrived.append(target)
    _put_in_place(plan, path, arrived)


def _has_size(file: RemoteFile, target: Path) -> bool:
    return target.exists() and target.stat().st_size == file.size_bytes


def _is_known(file: RemoteFile, is_same_revision: bool) -> bool:
    """Whether a file of the right size, and of the right hash where one is told, is this revision's."""
    return is_same_revision or (file.name != _CONFIG and file.digest is not None)


def _fetch(plan: Pull, file: RemoteFile, target: Path, token: str | None, report: Report) -> None:
    """Fetch one file to its partial, which keeps what arrived.

    The hub's own snapshot_download has forgotten partial files since its version 2; the function
    below it that knows byte ranges is used instead.
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    partial = _partial(target, plan.revision)
    partial.parent.mkdir(parents=True, exist_ok=True)
    counted_bytes = 0

    def report_up_to(num_bytes: int) -> None:
        nonlocal counted_bytes
        report(num_bytes - counted_bytes)
        counted_bytes = num_bytes

    with partial.open("ab") as stream:
        have_bytes = stream.tell()
        report_up_to(min(have_bytes, file.size_bytes))
        if have_bytes < file.size_bytes:
            talk(
                plan.name,
                lambda: http_get(
                    hf_hub_url(plan.name, file.name, revision=plan.revision),
                    stream,
                    resume_size=have_bytes,
                    headers=build_hf_headers(token=token),
                    expected_size=file.size_bytes,
                    # From the beginning again where a server knows no ranges.
                    tqdm_class=_reporting(lambda num: report_up_to(stream.tell() + num)),
                ),
            )
    if not _is_whole(partial, file):
        partial.unlink()
        raise HubError(f"{file.name} arrived damaged and was thrown away. Pull again.")


def _is_whole(path: Path, file: RemoteFile, report: Report = lambda num_bytes: None) -> bool:
    """Whether it has the size and the hash that are told; `report` hears of what is read and whole."""
    if not _has_size(file, path):
        return False
    if file.digest is None:
        report(file.size_bytes)
        return True
    hashing = file.new_hash()
    with path.open("rb") as stream:
        while part := stream.read(_HASHED_AT_ONCE):
            hashing.update(part)
            report(len(part))
    is_whole = hashing.hexdigest() == file.digest
    report(0 if is_whole else -file.size_bytes)
    return is_whole


def _put_in_place(plan: Pull, path: Path, arrived: list[Path]) -> None:
    """Let what has arrived take the place of what was there.

    A directory without config.json is no model, so the old one goes first and the new one comes last.
    """
    config = path / _CONFIG
    _, held_files = _read_record(path)
    if config in arrived:
        config.unlink(missing_ok=True)
    for name in held_files - {file.name for file in plan.files}:
        _target(path, name).unlink(missing_ok=True)
    for target in arrived:
        if target == config:
            _write_record(plan, path)
        _partial(target, plan.revision).replace(target)


def _read_record(path: Path) -> tuple[str, set[str]]:
    """The revision that a directory holds and its files; empty where that is not known."""
    try:
        revision, *files = (path / _RECORD).read_text().splitlines()
    except (OSError, ValueError):
        return "", set()
    return revision, set(files)


def _write_record(plan: Pull, path: Path) -> None:
    (path / _RECORD).write_text("\n".join([plan.revision, *(file.name for file in plan.files)]))


def _target(path: Path, file: str) -> Path:
    """Where a file belongs in a model's directory. Raises HubError when that is outside of it."""
    target = path / file
    if not file.isprintable() or not target.parent.resolve().is_relative_to(path.resolve()):
        raise HubError(f"{path.name} has a file named {file!r}, which would leave its directory.")
    return target


def _partial(target: Path, revision: str) -> Path:
    return target.with_name(target.name + _partial_suffix(revision))


def _partial_suffix(revision: str) -> str:
    return f".{re.sub(r'[^0-9A-Za-z]', '', revision)[:12]}.partial"


def _drop_partials(plan: Pull, path: Path) -> None:
    """What other revisions left unfinished is of no use any more."""
    for partial in path.rglob("*.partial"):
        if not partial.name.endswith(_partial_suffix(plan.revision)):
            partial.unlink()


def remove(name: str, models_dir: Path) -> bool:
    """Delete a pulled model, or what has arrived of one. False: there is none. Raises HubError."""
    _check_name(name)
    path = models_dir / name
    if not path.is_dir():
        return False
    if path.is_symlink():
        raise HubError(f"{path} is a link. Delete the link, and what it leads to, by hand.")
    with _disk_errors_explained(path), held_alone(path, name):
        (path / _CONFIG).unlink(missing_ok=True)  # the others alone are no model
        shutil.rmtree(path)
    return True


def is_name(name: str) -> bool:
    """Whether a model on the hub may be named so, and its directory here."""
    return _NAME.fullmatch(name) is not None


def _check_name(name: str) -> None:
    if not is_name(name):
        raise HubError(f"'{name}' is no model name. Write ORG/MODEL, as on the hub's page.")


def _is_wanted(file: str) -> bool:
    from fnmatch import fnmatch

    if _MODULE.fullmatch(file):
        return True
    return any(fnmatch(file, p) for p in WANTED) and not any(fnmatch(file, p) for p in UNWANTED)


def _kind(plan: Pull, token: str | None) -> ModelKind:
    """Fetch what tells it by itself: a few kilobytes decide whether gigabytes are worth it. Raises
    ModelRefused."""
    with TemporaryDirectory(prefix="vitrine-pull-") as directory:
        _download_small(plan, _CONFIG, directory, token)
        if any(file.name == MODULES_FILE for file in plan.files):
            _download_small(plan, MODULES_FILE, directory, token)
        return read_kind(Path(directory))


def _download_small(plan: Pull, file: str, directory: str, token: str | None) -> None:
    from huggingface_hub import hf_hub_download

    talk(
        plan.name,
        lambda: hf_hub_download(
            plan.name, file, revision=plan.revision, local_dir=directory, token=token
        ),
    )


def _num_weights(told: Any) -> int | None:
    """By what the hub has counted; None where it has not, or where elements are packed weights."""
    counts: dict[str, int] = {} if told is None else told.parameters
    if not counts or not _PLAIN_DTYPES.issuperset(counts):
        return None
    return sum(counts.values())


def _check_memory(
    plan: Pull, num_weights: int | None, memory_bytes: int | None, dtype: str, *, on_gpu: bool
) -> None:
    """As it is while it loads, before anything becomes int8 or goes to a GPU."""
    own_bytes = plan.weights_bytes
    if num_weights is not None:
        own_bytes = num_weights * bytes_of_weight(dtype, on_gpu=on_gpu)
    needed = int(own_bytes * WEIGHTS_OVERHEAD)
    available = memory.loadable_bytes() if memory_bytes is None or on_gpu else memory_bytes
    if needed > available:
        raise ModelTooLarge(plan.name, needed_bytes=needed, available_bytes=available)


def _check_disk(plan: Pull, models_dir: Path) -> None:
    models_dir.mkdir(parents=True, exist_ok=True)
    already = sum(_bytes_there(plan, file, models_dir / plan.name) for file in plan.files)
    needed, free = plan.size_bytes - already, shutil.disk_usage(models_dir).free
    if needed > free:
        raise HubError(
            f"{plan.name} takes {needed / 2**30:.1f} GiB;"
            f" {free / 2**30:.1f} GiB are free in {models_dir}."
        )


def _bytes_there(plan: Pull, file: RemoteFile, path: Path) -> int:
    """How much of a file is probably there. Only pull() looks into files of another revision."""
    for place in (path / file.name, _partial(path / file.name, plan.revision)):
        if place.exists() and place.stat().st_size <= file.size_bytes:
            return place.stat().st_size
    return 0


@contextmanager
def _disk_errors_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise HubError(FULL) from error
        raise HubError(f"{path} cannot be written ({cause_of(error)}).") from error


def _reporting(report: Report) -> Any:
    """A tqdm class that hands on the bytes that come, and draws nothing."""
    from tqdm import tqdm

    class Reporter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            report(max(0, int(n or 0)))
            return None

    return Reporter
