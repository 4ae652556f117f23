"""Our scripts and styles as they are collected: without their comments, and joined into few files."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.files.base import ContentFile, File
from servestatic.storage import CompressedManifestStaticFilesStorage

from webapp.chunks import Joined
from webapp.page_files import ENTRIES, SHEETS, joined_sheet, write_needed
from webapp.uncommented import uncommented

_OURS = re.compile(r"(js|css)/.*\.(js|css)$")
_MODULE = re.compile(r"js/[\w-]+\.js$")


class JoinedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Modules in chunks, style sheets by the page, both without their comments."""

    def post_process(
        self, paths: Mapping[str, tuple[Any, str]], *arguments: Any, **options: Any
    ) -> Iterator[Any]:
        lean = {name: (_Lean(storage), path) for name, (storage, path) in paths.items()}
        texts = {
            name.removeprefix("js/"): _read(*found)
            for name, found in lean.items()
            if _MODULE.match(name)
        }
        joined = Joined(texts, ENTRIES)
        made = {f"js/{name}": text for name, text in joined.files().items()}
        for name, parts in SHEETS.items():
            made[joined_sheet(name)] = "\n".join(_read(*lean[part]) for part in parts)
        gone = {f"js/{name}" for name in joined.joined}
        kept: dict[str, tuple[Any, str]]
        kept = {name: found for name, found in lean.items() if name not in gone}
        kept |= {name: (_Made(text), name) for name, text in made.items()}
        for name in made.keys() - paths.keys():  # each is compressed beside the one with its hash
            Path(self.path(name)).write_text(made[name])
        write_needed(joined, Path(self.location))
        yield from super().post_process(kept, *arguments, **options)


class _Lean:
    """Where the sources lie, read without their comments."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def open(self, path: str, mode: str = "rb") -> "File[Any]":
        if not _OURS.match(path):
            found: File[Any] = self._storage.open(path, mode)
            return found
        with self._storage.open(path) as source:
            text = source.read().decode()
        return ContentFile(uncommented(text, is_script=path.endswith(".js")).encode(), path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


class _Made:
    """Where a file that has no source of its own is read."""

    def __init__(self, text: str) -> None:
        self._text = text

    def open(self, path: str, mode: str = "rb") -> "File[Any]":
        return ContentFile(self._text.encode(), path)


def _read(storage: Any, path: str) -> str:
    with storage.open(path) as source:
        text: str = source.read().decode()
    return text
