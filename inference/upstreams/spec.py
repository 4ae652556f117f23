"""Which servers a model is asked of, and how: read from one line of configuration."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, urlsplit, urlunsplit

Protocol = Literal["openai", "anthropic"]
Continuation = Literal["", "prefix", "vllm"]
_ENTRY = re.compile(r"[^=]+=\s*(anthropic\+)?https?://", flags=re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UpstreamKind = Literal["chat", "transcription", "speech", "image"]
_KINDS = "'chat', 'transcription', 'speech' or 'image'"
_OF_CHATS = ("context", "continue", "tools", "images")
_OPTIONS = ("kind", "key", *_OF_CHATS, "voice", "timeout")
USUAL_VOICE = "alloy"  # OpenAI's, which other servers know as well
_MAX_VOICE_CHARS = 100


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """A model on one or several servers that are alike (`urls`: the bases of their APIs).

    `continues` says how the server goes on with an answer that broke off: "" not at all, "prefix"
    when the messages end with it (llama.cpp, Ollama, Anthropic's older models), "vllm" when two flags
    are set as well. Nothing tells in one way whether a model `sees_images`, so the operator does; nor
    what it is made for (`kind`). A speech model has a `voice` for those who name none.
    `timeout_s` is the longest silence that is waited through.
    """

    name: str
    protocol: Protocol
    model: str
    urls: tuple[str, ...]
    api_key: str = field(default="", repr=False)
    context_tokens: int | None = None
    continues: Continuation = ""
    has_tools: bool = True
    sees_images: bool = False
    timeout_s: float = 120.0
    kind: UpstreamKind = "chat"
    voice: str = USUAL_VOICE

    @property
    def hosts(self) -> str:
        return ", ".join(host_of(url) for url in self.urls)


def host_of(url: str) -> str:
    """The server's name and port: what people may see of an address."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def is_upstream(entry: str) -> bool:
    """Whether a line of configuration means a server, not a directory or a hub's model."""
    return bool(_ENTRY.match(entry))


def parse_upstream(entry: str, secret_of: Callable[[str], str | None]) -> UpstreamSpec:
    """`NAME=URL[|URL …][?OPTION=VALUE[&OPTION=VALUE …]][#MODEL]`, with `_OPTIONS`.

    `key` names the secret that holds the API key, as `secret_of` finds it. Raises ValueError with a
    sentence for the operator; it quotes no secrets.
    """
    name, _, location = entry.partition("=")
    name = name.strip()
    *others, last = location.strip().split("|")
    if any("?" in url or "#" in url for url in others):
        raise ValueError(f"{name}: options and the model stand behind the last address")
    parts = urlsplit(last)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(options.keys() - set(_OPTIONS)):
        raise ValueError(f"{name}: there is no option '{unknown[0]}'; there are {_OPTIONS}")
    urls = [*others, urlunsplit(parts._replace(query="", fragment=""))]
    protocol, bases = _split_protocol(name, urls)
    kind = _kind(name, options, protocol)
    return UpstreamSpec(
        name=name,
        kind=kind,
        voice=_voice(name, options, kind),
        protocol=protocol,
        model=parts.fragment or name,
        urls=bases,
        api_key=_key(name, options, secret_of),
        context_tokens=_context(name, options),
        continues=_continuation(name, options),
        has_tools=_is_on(name, options, "tools", otherwise="on"),
        sees_images=_is_on(name, options, "images", otherwise="off"),
        timeout_s=_timeout(name, options, kind),
    )


def _kind(name: str, options: dict[str, str], protocol: Protocol) -> UpstreamKind:
    match options.get("kind", "chat"):
        case "chat":
            return "chat"
        case "transcription" | "speech" | "image" as kind:
            pass
        case other:
            raise ValueError(f"{name}: kind is {_KINDS}, not '{other}'")
    if protocol == "anthropic":
        raise ValueError(f"{name}: Anthropic's protocol knows chats only")
    if foreign := next((option for option in _OF_CHATS if option in options), None):
        raise ValueError(f"{name}: {foreign} is an option of chat models")
    return kind


def _voice(name: str, options: dict[str, str], kind: UpstreamKind) -> str:
    voice = options.get("voice", USUAL_VOICE)
    if "voice" in options and kind != "speech":
        raise ValueError(f"{name}: voice is an option of speech models")
    if not (0 < len(voice) <= _MAX_VOICE_CHARS and voice.isprintable()):
        raise ValueError(f"{name}: voice is the name of one that the server has")
    return voice


def _split_protocol(name: str, urls: list[str]) -> tuple[Protocol, tuple[str, ...]]:
    protocols: set[Protocol] = set()
    bases = []
    for url in urls:
        scheme, _, rest = url.partition("://")
        protocols.add("anthropic" if scheme.lower().startswith("anthropic+") else "openai")
        base = f"{scheme.lower().removeprefix('anthropic+')}://{rest}".rstrip("/")
        _check_url(name, base)
        bases.append(base)
    if len(protocols) > 1:
        raise ValueError(f"{name}: its servers speak different protocols")
    return protocols.pop(), tuple(bases)


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound:
        raise ValueError(f"{name}: its address is none; it begins with http:// or https://")
    if parts.username or parts.password:
        raise ValueError(f"{name}: keys do not go into the address; write ?key=NAME_OF_A_VARIABLE")


def _key(name: str, options: dict[str, str], secret_of: Callable[[str], str | None]) -> str:
    if not (variable := options.get("key", "")):
        return ""
    if not _VARIABLE.fullmatch(variable):
        # It is not quoted: it may be the key itself.
        raise ValueError(f"{name}: key is the name of a variable that holds the key")
    key = secret_of(variable)
    if not key:
        raise ValueError(f"{name}: its key is to be in {variable}, which is empty")
    if not key.isascii() or not key.isprintable():
        raise ValueError(f"{name}: the key in {variable} has characters that no key has")
    return key


def _is_on(name: str, options: dict[str, str], option: str, *, otherwise: str) -> bool:
    match options.get(option, otherwise):
        case "on" | "off" as word:
            return word == "on"
        case other:
            raise ValueError(f"{name}: {option} is 'on' or 'off', not '{other}'")


def _context(name: str, options: dict[str, str]) -> int | None:
    text = options.get("context")
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name}: context is a number of tokens, not '{text}'")
    return int(text)


def _continuation(name: str, options: dict[str, str]) -> Continuation:
    match options.get("continue", ""):
        case "" | "prefix" | "vllm" as how:
            return how
        case other:
            raise ValueError(f"{name}: continue is 'prefix' or 'vllm', not '{other}'")


def _timeout(name: str, options: dict[str, str], kind: UpstreamKind) -> float:
    # Pictures come all at once, after minutes in which nothing is heard.
    text = options.get("timeout", "300" if kind == "image" else "120")
    if not text.isdecimal() or not 1 <= int(text) <= 3600:
        raise ValueError(f"{name}: timeout is 1 to 3600 seconds, not '{text}'")
    return float(text)
