"""Our scripts and styles as browsers get them: without the lines that hold nothing but comments.

These are a quarter of what a page loads, compressed. Each leaves an empty line behind, so that errors
name the lines of the sources. Libraries stay as they are: their comments hold their licences.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.files.base import ContentFile, File
from servestatic.storage import CompressedManifestStaticFilesStorage

_OURS = re.compile(r"(js|css)/.*\.(js|css)$")
_BLOCK = re.compile(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^[ \t]*//.*$", re.MULTILINE)


def uncommented(text: str, *, is_script: bool) -> str:
    """A comment that shares a line with code stays; so would one within a template's text be taken
    for a comment, and a test looks that there is none."""
    text = _BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
    return _LINE.sub("", text) if is_script else text


class UncommentedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    def post_process(
        self, paths: Mapping[str, tuple[Any, str]], *arguments: Any, **options: Any
    ) -> Iterator[Any]:
        lean = {name: (_Lean(storage), path) for name, (storage, path) in paths.items()}
        yield from super().post_process(lean, *arguments, **options)


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
