"""Translations as files: what the source says, `.po` for people, `.mo` for Python's gettext.

All of it in Python, for the tools of GNU gettext are not on every machine. There are two catalogs a
language, as Django has them: `django` for templates and Python, `djangojs` for the modules of the page.
"""

import ast
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation.template import templatize

BASE_DIR = Path(__file__).resolve().parent.parent
LOCALE_DIR = Path(__file__).resolve().parent / "locale"
DOMAINS = ("django", "djangojs")
_PACKAGES = ("webapp", "chat")
_STRING = r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
_CALL = re.compile(rf"\b(?:n?gettext|_)\(\s*u?{_STRING}(?:,\s*u?{_STRING})?")
_PYTHON_NAMES = {"gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "_"}
_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")


@dataclass(slots=True)
class Entry:
    """A message: its English, the English of its plural or "", its translation in each form."""

    text: str
    plural: str = ""
    forms: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    @property
    def is_translated(self) -> bool:
        return bool(self.forms) and all(self.forms)


@dataclass(slots=True)
class Catalog:
    """A `.po` file: its header as it stands there, and its entries by their English."""

    header: str = ""
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def num_plurals(self) -> int:
        found = re.search(r"nplurals\s*=\s*(\d+)", self.header)
        return int(found[1]) if found else 2


def po_path(language: str, domain: str) -> Path:
    return LOCALE_DIR / language / "LC_MESSAGES" / f"{domain}.po"


# --- what the source says -------------------------------------------------------------------------


def used(domain: str) -> dict[str, Entry]:
    """Every message of the source by its English."""
    entries: dict[str, Entry] = {}
    for path, text, plural in _used_in_modules() if domain == "djangojs" else _used_on_server():
        entry = entries.setdefault(text, Entry(text))
        entry.plural = entry.plural or plural
        entry.places.add(path.relative_to(BASE_DIR).as_posix())
    return entries


def _used_in_modules() -> Iterator[tuple[Path, str, str]]:
    for path in sorted((BASE_DIR / "static" / "js").glob("*.js")):
        yield from _calls(path, path.read_text(encoding="utf-8"))


def _used_on_server() -> Iterator[tuple[Path, str, str]]:
    templates = BASE_DIR / "templates"
    for path in sorted([*templates.rglob("*.html"), *templates.rglob("*.txt")]):
        yield from _calls(path, templatize(path.read_text(encoding="utf-8")))
    for package in _PACKAGES:
        for path in sorted((BASE_DIR / package).rglob("*.py")):
            yield from _python_calls(path)


def _calls(path: Path, source: str) -> Iterator[tuple[Path, str, str]]:
    for call in _CALL.finditer(source):
        text, plural = call.groups()
        is_plural = call[0].startswith("ngettext")
        yield path, _literal(text), _literal(plural) if is_plural and plural else ""


def _literal(quoted: str) -> str:
    """A string of JavaScript or Python; both have the escapes that messages need."""
    return str(ast.literal_eval(quoted))


def _python_calls(path: Path) -> Iterator[tuple[Path, str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in _PYTHON_NAMES:
            continue
        texts = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)]
        strings = [text for text in texts if isinstance(text, str)]
        if strings:
            yield path, strings[0], strings[1] if len(strings) > 1 else ""


def placeholders(text: str) -> set[str]:
    """The names in a message's `%(name)s`."""
    return {found[1] for found in _PLACEHOLDER.finditer(text) if found[1]}


# --- .po ------------------------------------------------------------------------------------------


def read_po(path: Path) -> Catalog:
    """Raises ValueError where a line is none of a catalog."""
    catalog = Catalog()
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        entry = _read_entry(block)
        if entry is None:
            continue
        if entry.text:
            catalog.entries[entry.text] = entry
        else:
            catalog.header = entry.forms[0]
    return catalog


def _read_entry(block: str) -> Entry | None:
    values: dict[str, str] = {}
    keyword = ""
    places: set[str] = set()
    for line in filter(None, map(str.strip, block.splitlines())):
        if line.startswith("#"):
            places |= set(line[2:].split()) if line.startswith("#:") else set()
            continue
        found = re.fullmatch(r"(?:(msgid|msgid_plural|msgstr(?:\[\d\])?)\s+)?(\".*\")", line)
        if not found:
            raise ValueError(f"no line of a catalog: {line}")
        keyword = found[1] or keyword
        values[keyword] = values.get(keyword, "") + json.loads(found[2])
    if not values:
        return None
    forms = [value for name, value in sorted(values.items()) if name.startswith("msgstr")]
    return Entry(values["msgid"], values.get("msgid_plural", ""), forms, places)


def write_po(path: Path, catalog: Catalog) -> None:
    blocks = [f'msgid ""\nmsgstr ""\n{_header_lines(catalog.header)}']
    blocks += [_block(catalog.entries[text]) for text in sorted(catalog.entries)]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _header_lines(header: str) -> str:
    return "\n".join(_quoted(f"{line}\n") for line in header.strip().splitlines())


def _block(entry: Entry) -> str:
    lines = [f"#: {place}" for place in sorted(entry.places)]
    if "%(" in entry.text + entry.plural:
        lines.append("#, python-format")
    lines.append(f"msgid {_quoted(entry.text)}")
    if entry.plural:
        lines.append(f"msgid_plural {_quoted(entry.plural)}")
        lines += [f"msgstr[{n}] {_quoted(form)}" for n, form in enumerate(entry.forms)]
    else:
        lines.append(f"msgstr {_quoted(entry.forms[0] if entry.forms else '')}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def updated(catalog: Catalog, entries: dict[str, Entry]) -> Catalog:
    """The catalog with the messages of the source: new ones empty, old ones gone."""
    new = Catalog(catalog.header)
    for text, entry in entries.items():
        num_forms = catalog.num_plurals if entry.plural else 1
        before = catalog.entries.get(text)
        is_kept = before is not None and len(before.forms) == num_forms
        forms = before.forms if before and is_kept else [""] * num_forms
        new.entries[text] = Entry(text, entry.plural, forms, entry.places)
    return new


# --- .mo ------------------------------------------------------------------------------------------


def mo_bytes(catalog: Catalog) -> bytes:
    """The catalog as Python's gettext reads it; a message without a translation is left out.

    The format: https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html
    """
    texts = {b"": catalog.header.encode()}
    for entry in catalog.entries.values():
        if entry.is_translated:
            key = f"{entry.text}\0{entry.plural}" if entry.plural else entry.text
            texts[key.encode()] = "\0".join(entry.forms).encode()
    keys = sorted(texts)
    start = 7 * 4 + 16 * len(keys)
    tables, pool = [b"", b""], b""
    for number, strings in enumerate((keys, [texts[key] for key in keys])):
        for string in strings:
            tables[number] += struct.pack("<II", len(string), start + len(pool))
            pool += string + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(keys), 28, 28 + 8 * len(keys), 0, start)
    return head + tables[0] + tables[1] + pool
