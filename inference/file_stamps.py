"""Whether a model's small files are still those that were read: a pull puts others in their place."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

Stamp = tuple[tuple[str, int, int], ...]


def stamp_of(paths: Iterable[Path]) -> Stamp:
    """Changes with the files of some directories, by their times and sizes; weights do not count, which
    nobody keeps."""
    found = []
    for path in paths:
        for file in sorted(path.glob("*")):
            if file.suffix in (".json", ".jinja", ".txt", ".model"):
                with suppress(OSError):  # a link to nowhere, or a file that is just being replaced
                    told = file.stat()
                    found.append((str(file), told.st_mtime_ns, told.st_size))
    return tuple(found)
