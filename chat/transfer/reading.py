"""The chats of an uploaded file, one by one: JSON, JSON lines, or a zip of such files.

Whatever is wrong with one chat is said of that chat, and the others go on. What is read is bounded:
bytes unpacked, bytes of one chat, files in the zip.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from chat.transfer import portable
from chat.transfer.formats import chatgpt, librechat, openwebui
from chat.transfer.json_stream import TOO_LARGE, BadJson, Item, Unreadable, items
from chat.transfer.portable import BadChat, Chat

SCHEMA = "vitrine.chats"
VERSION = 1
MAX_CHAT_BYTES = 32 * 2**20
MAX_UNPACKED_BYTES = 8 * 2**30
MAX_FILES = 20_000
_CHUNK_BYTES = 2**16
_STREAMED = ("chats",)
_CHAT_FILE = re.compile(r"(?:^|/)(?:conversations|chats)(?:[-_]\d+)?\.json$")
_FOREIGN = (chatgpt, openwebui, librechat)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A chat, or a file of a zip, that cannot be imported, and why."""

    title: str
    reason: str


class BadFile(ValueError):
    """Nothing of the file can be read."""


def read_chats(path: Path) -> Iterator[Chat | Skipped]:
    """Checked chats, in the file's order. Raises BadFile."""
    budget = _Budget()
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield from _read_json(file, budget, path.name, is_alone=True)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _read_zip(archive, budget)
    except zipfile.BadZipFile:
        raise BadFile("The zip file is damaged.") from None


def _read_zip(archive: zipfile.ZipFile, budget: "_Budget") -> Iterator[Chat | Skipped]:
    entries = archive.infolist()
    if len(entries) > MAX_FILES:
        raise BadFile(f"The zip holds more than {MAX_FILES:,} files.")
    files = [entry for entry in entries if entry.filename.endswith(".json")]
    chosen = [entry for entry in files if _CHAT_FILE.search(entry.filename)] or files
    if not chosen:
        raise BadFile("The zip holds no chats: there is no JSON file in it.")
    for entry in sorted(chosen, key=lambda entry: entry.filename):
        name = entry.filename.rsplit("/", 1)[-1]
        try:
            with archive.open(entry) as file:
                yield from _read_json(file, budget, name, is_alone=len(chosen) == 1)
        except (zipfile.BadZipFile, zlib.error, EOFError):
            yield Skipped(name, "This part of the zip is damaged.")
        except (RuntimeError, NotImplementedError):
            yield Skipped(name, "It is encrypted, or packed in a way that cannot be read.")


def _read_json(
    file: IO[bytes], budget: "_Budget", name: str, *, is_alone: bool
) -> Iterator[Chat | Skipped]:
    header: dict[str, Any] = {}
    num_bytes = 0  # of the header
    is_first = True
    try:
        for item in items(budget.chunks(file), streamed=_STREAMED, max_item_bytes=MAX_CHAT_BYTES):
            is_first = False
            if item.is_end:
                if "chats" not in header:
                    yield from _of_object(header)
                header, num_bytes = {}, 0
            elif item.key is None:
                yield _of_item(item)
            elif item.is_streamed:
                header.setdefault("chats", True)
                _check_header(header)
                yield _of_item(item, is_ours=True)
            else:
                num_bytes += len(item.raw) + len(item.key)
                _take_into(header, item, is_too_large=num_bytes > MAX_CHAT_BYTES)
    except BadJson as error:
        if is_alone and is_first:
            raise BadFile(str(error)) from None
        yield Skipped(name, str(error))


def _take_into(header: dict[str, Any], item: Item, *, is_too_large: bool) -> None:
    """An object that stands alone may be a chat, and is no larger than one."""
    if is_too_large:
        header["unreadable"] = TOO_LARGE
        return
    try:
        header[str(item.key)] = item.value()
    except Unreadable as error:
        header["unreadable"] = str(error)


def _check_header(header: dict[str, Any]) -> None:
    if header.get("schema") != SCHEMA:
        raise BadJson("The file is not one that Vitrine has made.")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise BadJson("The file was made by a newer Vitrine.")


def _of_object(header: dict[str, Any]) -> Iterator[Chat | Skipped]:
    """An object alone is a chat, or our own file without any."""
    if header.get("schema") == SCHEMA:
        return
    if header.get("unreadable"):
        yield Skipped(_title_of(header), header["unreadable"])
    else:
        yield _of_value(header)


def _of_item(item: Item, *, is_ours: bool = False) -> Chat | Skipped:
    try:
        value = item.value()
    except Unreadable as error:
        return Skipped(_title_in(item.raw), str(error))
    return _of_value(value, is_ours=is_ours)


def _of_value(value: Any, *, is_ours: bool = False) -> Chat | Skipped:
    if not isinstance(value, dict):
        return Skipped("", "It is no chat.")
    try:
        if is_ours:
            return portable.checked(portable.from_json(value))
        for foreign in _FOREIGN:
            if foreign.is_chat(value):
                return portable.checked(foreign.read(value))
    except BadChat as error:
        return Skipped(_title_of(value), str(error))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        # A foreign file may be shaped in ways that nobody has seen.
        return Skipped(_title_of(value), "It is not shaped as its format says.")
    return Skipped(_title_of(value), "It is in none of the formats that are known here.")


def _title_of(value: dict[str, Any]) -> str:
    title = value.get("title") or value.get("id") or value.get("conversationId")
    return title[:200] if isinstance(title, str) else ""


def _title_in(raw: bytes) -> str:
    found = re.search(rb'"title"\s*:\s*"([^"\\]{1,200})"', raw[:4096])
    return found[1].decode(errors="replace") if found else ""


@dataclass
class _Budget:
    """How much may still be unpacked, over all files; a zip bomb ends here."""

    num_bytes: int = MAX_UNPACKED_BYTES

    def chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        while chunk := file.read(_CHUNK_BYTES):
            self.num_bytes -= len(chunk)
            if self.num_bytes < 0:
                raise BadFile(f"Unpacked it is larger than {MAX_UNPACKED_BYTES // 2**30} GiB.")
            yield chunk
