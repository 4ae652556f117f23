"""ES modules joined into few files: a page of a hundred small ones waits for a hundred answers.

Modules that the same pages need form one chunk, as bundlers split code
(esbuild.github.io/api/#splitting). What is imported when it is first wanted stays a file of its own,
with what nobody else needs.

Each module becomes a block in its chunk, and its exports the properties of one object, named after it.
That holds because of what our modules are, and what is not so raises `OddModule`: no module imports
itself by way of others, nothing exported is assigned anew, exports stand where they are declared.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_IMPORT = re.compile(
    r"""^import\s+(?:(?P<default>\w+)|\{(?P<names>[^}]*)\})?(?:\s*from\s*)?"(?P<source>[^"]+)";[ ]*$""",
    re.MULTILINE,
)
_EXPORT = re.compile(
    r"^export\s+(?=(?:async\s+function\b\*?|function\b\*?|class|const)\s+(\w+))", re.MULTILINE
)
_NOTHING = re.compile(r"^export \{\};$", re.MULTILINE)
_DYNAMIC = re.compile(r"""\bimport\(\s*"\./(?P<name>[\w-]+\.js)"\s*\)""")
_COMMENT = re.compile(r"/\*\*.*?\*/", re.DOTALL)  # types are imported in some
_UNREAD = re.compile(r"^(?:import\b(?!\()|export\b).*$", re.MULTILINE)


class OddModule(ValueError):
    """A module has an import or export of a form that is not known here."""


@dataclass(frozen=True)
class Module:
    name: str
    imports: tuple[tuple[str, str], ...]
    """Source and what is bound, as the inside of a destructuring, in the order of the text."""
    exports: tuple[str, ...]
    wanted_later: frozenset[str]
    body: str

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the modules beside it that it needs before it runs."""
        return tuple(source[2:] for source, _ in self.imports if source.startswith("./"))


@dataclass
class Chunk:
    name: str
    modules: list[Module] = field(default_factory=list)
    """Each behind those that it imports."""


def read_module(name: str, text: str) -> Module:
    """Raises OddModule."""
    imports = tuple((found["source"], _bound(found)) for found in _IMPORT.finditer(text))
    exports = tuple(found[1] for found in _EXPORT.finditer(text))
    body = _NOTHING.sub("", _EXPORT.sub("", _IMPORT.sub("", text)))
    if odd := _UNREAD.search(body):
        raise OddModule(f"{name}: {odd[0]}")
    code = _COMMENT.sub("", body)
    wanted_later = frozenset(found["name"] for found in _DYNAMIC.finditer(code))
    return Module(name, imports, exports, wanted_later, body.strip("\n"))


def _bound(found: re.Match[str]) -> str:
    if found["default"]:
        return f"default: {found['default']}"
    names = [name.split() for name in (found["names"] or "").split(",") if name.strip()]
    return ", ".join(": ".join(part for part in name if part != "as") for name in names)


class Joined:
    """The modules of `texts` (file name: text), in chunks for pages that begin with one of `entries`.

    Raises OddModule, and KeyError for an import of what is not there.
    """

    def __init__(self, texts: Mapping[str, str], entries: Iterable[str]) -> None:
        self._modules = {name: read_module(name, text) for name, text in texts.items()}
        self._entries = frozenset(entries)
        later = frozenset().union(*(module.wanted_later for module in self._modules.values()))
        self._roots = self._entries | later
        self._chunk_of: dict[str, Chunk] = {}
        self.chunks = self._split()

    def files(self) -> dict[str, str]:
        """Name and text of each file in the place of the modules that pages reach."""
        files = {chunk.name: self._text(chunk) for chunk in self.chunks}
        for name in sorted(self._roots - files.keys()):
            module = self._modules[name]
            files[name] = f"{self._import_of(name)}\n{_exported(module)}\n"
        return files

    @property
    def joined(self) -> frozenset[str]:
        """The modules that have no file of their own name any more."""
        return frozenset(self._chunk_of) - self._roots

    def needed_by(self, entry: str) -> list[str]:
        """The files that are fetched before a page that begins with `entry` runs, without that one."""
        return sorted({self._chunk_of[name].name for name in self._reach(entry)} - {entry})

    # --- which belong together -------------------------------------------------------------------

    def _split(self) -> list[Chunk]:
        at_once = {root: self._reach(root) for root in self._roots}
        at_all = {entry: self._reach(entry, also_later=True) for entry in self._entries}
        groups: dict[object, Chunk] = {}
        for name in self._in_order(self._roots):
            pages = frozenset(entry for entry in self._entries if name in at_once[entry])
            others = self._entries - pages
            # Another page may want it later, with one of these: nothing else may run then.
            wanted_with = frozenset(
                root
                for root in self._roots
                if name in at_once[root] and any(root in at_all[entry] for entry in others)
            )
            chunk = groups.setdefault((pages, wanted_with), Chunk(""))
            chunk.modules.append(self._modules[name])
            self._chunk_of[name] = chunk
        for chunk in groups.values():
            chunk.name = self._name_of(chunk)
        return list(groups.values())

    def _name_of(self, chunk: Chunk) -> str:
        """An entry's own if it is one; that of the only one that others want; else made of its first."""
        names = [module.name for module in chunk.modules]
        for roots in (self._entries, self._roots):
            if len(own := [name for name in names if name in roots]) == 1:
                return own[0]
        return f"_{min(names)}"

    def _reach(self, root: str, *, also_later: bool = False) -> set[str]:
        reached: set[str] = set()
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                module = self._modules[name]
                waiting += [*module.own, *(module.wanted_later if also_later else ())]
        return reached

    def _in_order(self, roots: Iterable[str]) -> list[str]:
        """All that the roots reach, each behind what it imports. Raises OddModule for a circle."""
        order: dict[str, None] = {}
        begun: set[str] = set()

        def visit(name: str) -> None:
            if name in begun:
                if name not in order:
                    raise OddModule(f"{name} imports itself by way of others")
                return
            begun.add(name)
            for other in self._modules[name].own:
                visit(other)
            order[name] = None

        for root in sorted(roots):
            visit(root)
        return list(order)

    # --- text ------------------------------------------------------------------------------------

    def _text(self, chunk: Chunk) -> str:
        inside = {module.name for module in chunk.modules}
        outside = sorted({other for module in chunk.modules for other in module.own} - inside)
        foreign = sorted(
            {s for module in chunk.modules for s, _ in module.imports if s[:2] != "./"}
        )
        lines = [self._import_of(other) for other in outside]
        lines += [f'import * as {_object_of(source)} from "{source}";' for source in foreign]
        lines += [self._block(module) for module in chunk.modules]
        if chunk.name in inside:
            lines.append(_exported(self._modules[chunk.name]))
        return "\n".join(line for line in lines if line) + "\n"

    def _import_of(self, name: str) -> str:
        return f'import {{ {_object_of(name)} }} from "./{self._chunk_of[name].name}";'

    @staticmethod
    def _block(module: Module) -> str:
        own = _object_of(module.name)
        bound = [
            f"const {{ {names} }} = {_object_of(source.removeprefix('./'))};"
            for source, names in module.imports
            if names
        ]
        given = (
            [f"Object.assign({own}, {{ {', '.join(module.exports)} }});"] if module.exports else []
        )
        inside = "\n".join([*bound, module.body, *given])
        return f"export const {own} = {{}};\n{{ // {module.name}\n{inside}\n}}"


def _object_of(source: str) -> str:
    return "$" + re.sub(r"\W", "_", source.removesuffix(".js"))


def _exported(module: Module) -> str:
    if not module.exports:
        return ""
    return f"export const {{ {', '.join(module.exports)} }} = {_object_of(module.name)};"
