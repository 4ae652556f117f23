"""Which tool servers there are: the operator's file, in the form that other MCP clients read as well.

`{"mcpServers": {"NAME": {"url": …} | {"command": …}}}`, see docs/configuration.md. What a file says is
trusted; what a server says about itself is not (definitions.py).
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

MAX_SERVERS = 50
_MIN_SECRET_CHARS = 5
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,30}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")

Texts = dict[str, str]


@dataclass(frozen=True, slots=True)
class ToolServerSpec:
    """One server. It is reached at `url`, or started here by `command`.

    `headers` and `env` hold secrets, and are shown nowhere. `tiers` and `groups` are whom it is for, by
    slug and by name; without any it is for all whose tier has tools. `tools` are names or shell
    patterns of those that are offered. `secrets` are values of variables that it is given. `is_own`: it
    is none, but what of Vitrine's is picked like one. `tells_others`: what is written may leave here.
    """

    name: str
    title: str
    description: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    timeout_s: float = 60.0
    tools: tuple[str, ...] = ("*",)
    tiers: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    is_own: bool = False
    tells_others: bool = True

    def __repr__(self) -> str:
        return f"ToolServerSpec({self.name!r}, {self.place!r})"

    @property
    def place(self) -> str:
        """Where it is, without what may be secret."""
        if not self.url:
            return self.command
        parts = urlsplit(self.url)
        return (
            f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        )

    def without_secrets(self, text: str) -> str:
        """What a library or a server says, without what it may quote of ours."""
        for secret in self._secrets():
            text = text.replace(secret, "…")
        return text

    def _secrets(self) -> list[str]:
        """Words of what may be secret, longest first; shorter ones are none, and stand in any text."""
        parts = urlsplit(self.url)
        given = [value for _, value in (*self.headers, *self.env)]
        given += [*self.secrets, parts.username or "", parts.password or ""]
        given += [value for _, value in parse_qsl(parts.query)]
        words = {word for value in given for word in (value, *value.split())}
        return sorted(
            (one for one in words if len(one) >= _MIN_SECRET_CHARS), key=len, reverse=True
        )

    def offers(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)


PYTHON = ToolServerSpec(
    "python",
    "Python",
    _("Runs code in a sandbox, without files or network"),  # type: ignore[arg-type]
    is_own=True,
    tells_others=False,
)
SEARCH = ToolServerSpec(
    "search",
    _("Web search"),  # type: ignore[arg-type]
    _("Asks a search engine, and opens what it finds"),  # type: ignore[arg-type]
    is_own=True,
)
IMAGES = ToolServerSpec(
    "images",
    _("Pictures"),  # type: ignore[arg-type]
    _("Draws what you ask for"),  # type: ignore[arg-type]
    is_own=True,
)


class _Entry(BaseModel):
    """As it stands in the file. One key too many is a mistake, never ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    title: Annotated[str, Field(max_length=80)] = ""
    description: Annotated[str, Field(max_length=200)] = ""
    url: str = ""
    headers: Texts = {}
    command: str = ""
    args: list[str] = []
    env: Texts = {}
    cwd: str | None = None
    timeout_s: Annotated[float, Field(gt=0, le=3600, strict=False)] = 60.0
    tools: Annotated[list[str], Field(min_length=1)] = ["*"]
    tiers: list[str] = []
    groups: list[str] = []
    disabled: bool = False

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if value and not _VARIABLE.search(value) and not _is_http(value):
            raise ValueError("is no http:// or https:// address")
        return value

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "_Entry":
        if bool(self.url) == bool(self.command):
            raise ValueError("needs a 'url' or a 'command', and not both")
        others = (self.args, self.env, self.cwd) if self.url else (self.headers,)
        if any(others):
            kind = "'args', 'env' and 'cwd' go with a 'command'"
            raise ValueError(kind if self.url else "'headers' go with a 'url'")
        if self.type is not None and (self.type == "stdio") != bool(self.command):
            raise ValueError(f"'type' is {self.type!r}, which the rest does not fit")
        return self


def tool_servers(path: Path, variable: Callable[[str], str | None]) -> tuple[ToolServerSpec, ...]:
    """Of the file; `${NAME}` in what may be secret is the variable NAME. Raises ValueError, which quotes
    no values."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{path} is no JSON") from None
    try:
        content = json.loads(text, object_pairs_hook=_object)
    except _Twice as error:
        raise ValueError(f"{path} names {error.args[0]!r} twice in one object") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is no JSON") from None
    servers = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f'{path} has no object "mcpServers"')
    if len(servers) > MAX_SERVERS:
        raise ValueError(f"{path} names more than {MAX_SERVERS} servers")
    found = [_spec(name, entry, variable) for name, entry in servers.items()]
    return tuple(spec for spec in found if spec is not None)


class _Twice(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two servers of a name one would be gone, whoever it was restricted to."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Twice(name)
        found[name] = value
    return found


def _spec(name: str, entry: Any, variable: Callable[[str], str | None]) -> ToolServerSpec | None:
    """None: it is switched off."""
    if not _NAME.fullmatch(name):
        rule = "letters, digits, - and single _ between them, at most 31"
        raise ValueError(f"{name!r} is no name of a tool server: those have {rule}")
    try:
        read = _Entry.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join((name, *map(str, first["loc"])))
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from None
    if read.disabled:
        return None
    filled = _Filling(name, variable)
    url, headers = filled.text(read.url), filled.texts(read.headers)
    if url and not _is_http(url):
        raise ValueError(f"{name}.url: is no http:// or https:// address")
    for header, value in headers:
        if not _HEADER.fullmatch(header) or not value.isascii() or not value.isprintable():
            raise ValueError(
                f"{name}.headers: {header!r} cannot be sent: name or value is no header's"
            )
    args, env = tuple(map(filled.text, read.args)), filled.texts(read.env)
    if any("\0" in one for one in (read.command, read.cwd or "", *args, *(v for _, v in env))):
        raise ValueError(f"{name}: holds a character that no command can be given")
    return ToolServerSpec(
        name=name,
        title=read.title or name,
        description=read.description,
        url=url,
        headers=headers,
        command=read.command,
        args=args,
        env=env,
        cwd=read.cwd,
        timeout_s=read.timeout_s,
        tools=tuple(read.tools),
        tiers=frozenset(read.tiers),
        groups=frozenset(read.groups),
        secrets=tuple(filled.values),
    )


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Filling:
    """Variables of the environment in what a server is given."""

    server: str
    variable: Callable[[str], str | None]
    values: list[str] = field(default_factory=list)

    def text(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self._value(match[1]), text)

    def texts(self, texts: Texts) -> tuple[tuple[str, str], ...]:
        return tuple((name, self.text(value)) for name, value in texts.items())

    def _value(self, name: str) -> str:
        value = self.variable(name)
        if value is None:
            raise ValueError(f"{self.server}: the variable {name} is not set")
        self.values.append(value)
        return value
