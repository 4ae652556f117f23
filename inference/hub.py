"""Pulling models from the hub: looked at before the download, resumable, with sentences for errors."""

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
class Pull:
    """What a pull would bring. Sizes in bytes."""

    name: str
    revision: str
    size_bytes: int
    weights_bytes: int


def plan_pull(name: str, models_dir: Path, token: str | None = None) -> Pull:
    """Look at a model on the hub before anything large is fetched.

    Raises HubError (no network, unknown, gated, no safetensors, disk), ModelRefused (an architecture
    that cannot be served) or ModelTooLarge (memory).
    """
    from huggingface_hub import HfApi

    _check_name(name)
    info = _talk(name, lambda: HfApi().model_info(name, files_metadata=True, token=token))
    files = [f for f in info.siblings or [] if _is_wanted(f.rfilename)]
    weights_bytes = sum(f.size or 0 for f in files if f.rfilename.endswith(".safetensors"))
    if not weights_bytes:
        raise HubError(f"{name} has no safetensors weights; other formats are not loaded.")
    size_bytes = sum(f.size or 0 for f in files)
    _check_architecture(name, models_dir, token)
    _check_memory(name, weights_bytes)
    _check_disk(name, size_bytes, models_dir)
    return Pull(name, info.sha or "", size_bytes, weights_bytes)


def pull(
    plan: Pull, models_dir: Path, token: str | None = None, progress: Progress | None = None
) -> Path:
    """Download a model to `models_dir`/ORG/MODEL. An interrupted pull goes on where it was.

    config.json comes last, so that a half pulled directory is not taken for a model.
    """
    from huggingface_hub import hf_hub_download, snapshot_download

    path = models_dir / plan.name
    _talk(
        plan.name,
        lambda: snapshot_download(
            plan.name,
            revision=plan.revision or None,
            local_dir=path,
            allow_patterns=WANTED,
            ignore_patterns=[*UNWANTED, "config.json"],
            token=token,
            tqdm_class=_reporting(progress, plan.size_bytes) if progress else None,
        ),
    )
    _talk(
        plan.name,
        lambda: hf_hub_download(
            plan.name, "config.json", revision=plan.revision or None, local_dir=path, token=token
        ),
    )
    return path


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


def _check_architecture(name: str, models_dir: Path, token: str | None) -> None:
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


def _check_disk(name: str, size_bytes: int, models_dir: Path) -> None:
    models_dir.mkdir(parents=True, exist_ok=True)
    already = sum(f.stat().st_size for f in (models_dir / name).rglob("*") if f.is_file())
    needed, free = size_bytes - already, shutil.disk_usage(models_dir).free
    if needed > free:
        raise HubError(
            f"{name} takes {needed / 2**30:.1f} GiB; {free / 2**30:.1f} GiB are free in {models_dir}."
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


def _reporting(progress: Progress, total_bytes: int) -> Any:
    """A tqdm class that reports bytes to `progress` and draws nothing."""
    from tqdm.asyncio import tqdm_asyncio

    done = 0

    class Reporter(tqdm_asyncio):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._counts_bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal done
            if self._counts_bytes:
                done += int(n or 0)
                progress(min(done, total_bytes), total_bytes)
            return None

    return Reporter
