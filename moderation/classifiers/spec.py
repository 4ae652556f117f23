"""Which classifiers are asked, and how: read from a line of configuration for each.

builtin
classifier:ORG/MODEL[?LABEL=CATEGORY+CATEGORY&…]
guard:ORG/MODEL[?family=llamaguard]
server:https://HOST/v1[?timeout=SECONDS&key=NAME_OF_A_VARIABLE][#MODEL]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

from moderation.categories import CATEGORIES
from moderation.classifiers.guard_families import FAMILIES

OFF = "off"
KEY_VARIABLE = "VITRINE_MODERATION_KEY"
_DEFAULT_TIMEOUT_S = 10
_MAX_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Rules, and heads on the built-in embedding model."""


@dataclass(frozen=True, slots=True)
class LabelModel:
    """A sequence classifier. `labels` say what its labels mean where that is not known."""

    model: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GuardModel:
    """A guard model; `family` is "" where the model itself tells."""

    model: str
    family: str = ""


@dataclass(frozen=True, slots=True)
class ModerationServer:
    """An endpoint of OpenAI's shape at `url`/moderations; without `model` it chooses."""

    url: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = _DEFAULT_TIMEOUT_S


ClassifierSpec = BuiltIn | LabelModel | GuardModel | ModerationServer
SecretOf = Callable[[str], str | None]


def parse_classifiers(entries: Sequence[str], secret_of: SecretOf) -> tuple[ClassifierSpec, ...]:
    """All of a configuration; none where it is OFF. Raises ValueError with a sentence for the operator,
    which quotes no secret."""
    if [entry.lower() for entry in entries] == [OFF]:
        return ()
    specs = tuple(_parsed(entry, secret_of) for entry in entries)
    names = [_named(spec) for spec in specs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]} is there twice")
    keyed = [
        entry for entry, spec in zip(entries, specs, strict=True) if _has_common_key(entry, spec)
    ]
    if len(keyed) > 1:
        raise ValueError(f"two servers would get {KEY_VARIABLE}; give each its own by ?key=")
    return specs


def _parsed(entry: str, secret_of: SecretOf) -> ClassifierSpec:
    kind, _, rest = entry.partition(":")
    if entry == "builtin":
        return BuiltIn()
    match kind:
        case "classifier" if rest:
            model, labels = _options(rest)
            return LabelModel(model, {label: _categories(names) for label, names in labels.items()})
        case "guard" if rest:
            return _guard(*_options(rest))
        case "server" if rest:
            return _server(rest, secret_of)
    raise ValueError(
        f"'{entry}' is neither builtin nor classifier:ORG/MODEL, guard:ORG/MODEL or"
        f" server:https://HOST/v1, and '{OFF}' stands alone"
    )


def _options(text: str) -> tuple[str, dict[str, str]]:
    name, _, query = text.partition("?")
    if not name or name != name.strip():
        raise ValueError(f"'{text}' names no model")
    return name, _pairs(name, query)


def _pairs(name: str, query: str) -> dict[str, str]:
    try:
        # "+" stands between categories, and is no space.
        pairs = parse_qsl(
            query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=bool(query)
        )
    except ValueError:
        raise ValueError(f"{name}: what stands behind ? is not of the form NAME=VALUE&…") from None
    return dict(pairs)


def _categories(names: str) -> tuple[str, ...]:
    found = tuple(name for name in names.split("+") if name)
    for name in found:
        if name not in CATEGORIES:
            raise ValueError(f"there is no category '{name}'; there are {', '.join(CATEGORIES)}")
    return found


def _guard(model: str, options: dict[str, str]) -> GuardModel:
    _known(model, options, ("family",))
    family = options.get("family", "")
    if family and family not in FAMILIES:
        raise ValueError(f"{model}: the family of a guard is one of {', '.join(FAMILIES)}")
    return GuardModel(model, family)


def _server(address: str, secret_of: SecretOf) -> ModerationServer:
    parts = _split(address)
    host = str(parts.hostname)
    options = _pairs(host, parts.query)
    _known(host, options, ("timeout", "key"))
    text = options.get("timeout", str(_DEFAULT_TIMEOUT_S))
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_TIMEOUT_S:
        raise ValueError(f"{host}: timeout is 1 to {_MAX_TIMEOUT_S} seconds, not '{text}'")
    variable = options.get("key", "")
    key = secret_of(variable or KEY_VARIABLE) or ""
    if variable and not key:
        raise ValueError(f"{host}: its key is to be in {variable}, which is empty")
    if not key.isascii() or not key.isprintable():
        raise ValueError(
            f"{host}: the key in {variable or KEY_VARIABLE} has characters that no key has"
        )
    url = urlunsplit(parts._replace(query="", fragment="")).rstrip("/")
    return ModerationServer(url, parts.fragment, key, float(text))


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound:
        raise ValueError("the address of a server begins with server:http:// or server:https://")
    if parts.username or parts.password:
        raise ValueError("keys do not go into the address; write ?key=NAME_OF_A_VARIABLE")
    return parts


def _known(name: str, options: Mapping[str, str], known: Sequence[str]) -> None:
    if unknown := sorted(options.keys() - set(known)):
        raise ValueError(f"{name}: there is no option '{unknown[0]}'; there are {', '.join(known)}")


def _named(spec: ClassifierSpec) -> str:
    match spec:
        case BuiltIn():
            return "builtin"
        case LabelModel(model=model) | GuardModel(model=model):
            return model
        case ModerationServer(url=url, model=model):
            return f"{url}#{model}"


def _has_common_key(entry: str, spec: ClassifierSpec) -> bool:
    return isinstance(spec, ModerationServer) and bool(spec.api_key) and "key=" not in entry
