"""Pulling models from the hub: looked at before the download, resumable, with sentences for errors."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference import memory
from inference.errors import ModelError, ModelTooLarge
from inference.weights import check_servable, read_config

# Only what serving needs. Pickled weights are not among it: opening them can run code.
WANTED = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja", "*.txt", "*.model"]
UNWANTED = ["original/*", "onnx/*", "openvino/*", "*/*.safetensors"]
_BYTES_PER_BYTE = 1.15  # in memory, of what the files take: see loader.py

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""


class HubError(ModelError):
    """The hub did not give the model; the message says why and what to do."""

    code = "hub_error"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """`sha256` is known for large files only."""

    name: str
    size_bytes: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Pull:
    """What a pull would bring; config.json is the last of its files."""

    name: str
    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def weights_bytes(self) -> int:
        return sum(f.size_bytes for f in self.files if f.name.endswith(".safetensors"))


def plan_pull(name: str, models_dir: Path, token: str | None = None) -> Pull:
    """Look at a model on the hub before anything large is fetched.

    Raises HubError (no network, unknown, gated, no safetensors, disk), ModelRefused (an architecture
    that cannot be served) or ModelTooLarge (memory).
    """
    from huggingface_hub import HfApi

    _check_name(name)
    info = _talk(name, lambda: HfApi().model_info(name, files_metadata=True, token=token))
    files = [
        RemoteFile(s.rfilename, s.size or 0, s.lfs.sha256 if s.lfs else None)
        for s in info.siblings or []
        if _is_wanted(s.rfilename)
    ]
    files.sort(key=lambda file: file.name == "config.json")
    plan = Pull(name, info.sha or "main", tuple(files))
    if not plan.weights_bytes:
        raise HubError(f"{name} has no safetensors weights; other formats are not loaded.")
    _check_architecture(name, token)
    _check_memory(name, plan.weights_bytes)
    _check_disk(plan, models_dir)
    return plan


def pull(
    plan: Pull, models_dir: Path, token: str | None = None, progress: Progress | None = None
) -> Path:
    """Download a model to `models_dir`/ORG/MODEL. An interrupted pull goes on within the file.

    config.json comes last, so that a half pulled directory is not taken for a model. Raises HubError.
    """
    path = models_dir / plan.name
    done_bytes = 0

    def report(num_bytes: int) -> None:
        nonlocal done_bytes
        done_bytes += num_bytes
        if progress is not None:
            progress(done_bytes, plan.size_bytes)

    for file in plan.files:
        target = path / file.name
        if target.exists() and target.stat().st_size == file.size_bytes:
            report(file.size_bytes)
        else:
            _fetch(plan, file, target, token, report)
    return path


def _fetch(
    plan: Pull, file: RemoteFile, target: Path, token: str | None, report: Callable[[int], None]
) -> None:
    """Fetch one file by way of FILE.partial, which keeps what arrived.

    The hub's own snapshot_download has forgotten partial files since its version 2; the function
    below it that knows byte ranges is used instead.
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    partial = target.with_name(target.name + ".partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("ab") as stream:
        have_bytes = stream.tell()
        report(have_bytes)
        if have_bytes < file.size_bytes:
            _talk(
                plan.name,
                lambda: http_get(
                    hf_hub_url(plan.name, file.name, revision=plan.revision),
                    stream,
                    resume_size=have_bytes,
                    headers=build_hf_headers(token=token),
                    expected_size=file.size_bytes,
                    tqdm_class=_reporting(report),
                ),
            )
    if not _is_whole(partial, file):
        partial.unlink()
        raise HubError(f"{file.name} arrived damaged and was thrown away. Pull again.")
    partial.replace(target)


def _is_whole(partial: Path, file: RemoteFile) -> bool:
    if partial.stat().st_size != file.size_bytes:
        return False
    if file.sha256 is None:
        return True
    with partial.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def remove(name: str, models_dir: Path) -> bool:
    """Delete a pulled model. False: there is none."""
    _check_name(name)
    path = models_dir / name
    if not path.is_dir():
        return False
    shutil.rmtree(path)
    return True


def _check_name(name: str) -> None:
    organisation, _, model = name.partition("/")
    if not organisation or not model or "/" in model or ".." in name or name.startswith((".", "/")):
        raise HubError(f"'{name}' is no model name. Write ORG/MODEL, as on the hub's page.")


def _is_wanted(file: str) -> bool:
    from fnmatch import fnmatch

    return any(fnmatch(file, p) for p in WANTED) and not any(fnmatch(file, p) for p in UNWANTED)


def _check_architecture(name: str, token: str | None) -> None:
    """Fetch config.json by itself: a few kilobytes decide whether gigabytes are worth fetching."""
    from tempfile import TemporaryDirectory

    from huggingface_hub import hf_hub_download

    with TemporaryDirectory(prefix="vitrine-pull-") as directory:
        _talk(name, lambda: hf_hub_download(name, "config.json", local_dir=directory, token=token))
        check_servable(read_config(Path(directory)))


def _check_memory(name: str, weights_bytes: int) -> None:
    needed, available = int(weights_bytes * _BYTES_PER_BYTE), memory.available_bytes()
    if needed > available:
        raise ModelTooLarge(name, needed_bytes=needed, available_bytes=available)


def _check_disk(plan: Pull, models_dir: Path) -> None:
    models_dir.mkdir(parents=True, exist_ok=True)
    already = sum(f.stat().st_size for f in (models_dir / plan.name).rglob("*") if f.is_file())
    needed, free = plan.size_bytes - already, shutil.disk_usage(models_dir).free
    if needed > free:
        raise HubError(
            f"{plan.name} takes {needed / 2**30:.1f} GiB;"
            f" {free / 2**30:.1f} GiB are free in {models_dir}."
        )


def _talk(name: str, ask: Callable[[], Any]) -> Any:
    """Ask the hub; whatever goes wrong becomes a HubError that a person can act on."""
    from httpx2 import TransportError
    from huggingface_hub import errors

    try:
        return ask()
    except errors.GatedRepoError:
        raise HubError(
            f"{name} is gated: accept its terms on its page, then set HF_TOKEN to a token of yours."
        ) from None
    except errors.RepositoryNotFoundError:
        raise HubError(f"The hub has no model {name}, or it is private (set HF_TOKEN).") from None
    except errors.EntryNotFoundError as error:
        raise HubError(f"{name} is no complete model: {error}") from None
    except errors.HfHubHTTPError as error:
        raise HubError(f"The hub answered with an error: {error}") from error
    except (
        errors.OfflineModeIsEnabled,
        errors.LocalEntryNotFoundError,
        TransportError,
        OSError,
    ) as error:
        raise HubError(
            f"The hub cannot be reached ({_cause(error)}). Is there a network?"
        ) from error


def _cause(error: BaseException) -> str:
    text = str(error).splitlines()
    return text[0][:120] if text else type(error).__name__


def _reporting(report: Callable[[int], None]) -> Any:
    """A tqdm class that hands the bytes on and draws nothing."""
    from tqdm import tqdm

    class Reporter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            report(int(n or 0))
            return None

    return Reporter
