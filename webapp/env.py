"""Typed readers of environment variables.

Each returns the default for an unset or empty variable and raises ImproperlyConfigured, naming the
variable, for nonsense. Values of secrets never appear in an error.
"""

import os
import re
from collections.abc import Sequence
from email.utils import parseaddr
from math import inf, isfinite
from pathlib import Path
from typing import overload

from django.core.exceptions import ImproperlyConfigured

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_asked: set[str] = set()


def env_str(name: str, default: str = "") -> str:
    _asked.add(name)
    return os.environ.get(name, "").strip() or default


def env_bool(name: str, default: bool) -> bool:
    value = env_str(name).lower()
    if not value:
        return default
    if value not in _TRUE + _FALSE:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")
    return value in _TRUE


def env_int(name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    value = env_str(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if number < minimum or (maximum is not None and number > maximum):
        upper = "" if maximum is None else f" and at most {maximum}"
        raise ImproperlyConfigured(f"{name} must be at least {minimum}{upper}, not {number}.")
    return number


@overload
def env_float(
    name: str, default: float, *, minimum: float = 0.0, maximum: float = inf
) -> float: ...


@overload
def env_float(
    name: str, default: None, *, minimum: float = 0.0, maximum: float = inf
) -> float | None: ...


def env_float(
    name: str, default: float | None, *, minimum: float = 0.0, maximum: float = inf
) -> float | None:
    """None is a default for what is left to Vitrine."""
    value = env_str(name)
    if not value:
        return default
    try:
        number = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}.") from None
    if not (isfinite(number) and minimum <= number <= maximum):
        upper = "" if maximum == inf else f" and at most {maximum:g}"
        raise ImproperlyConfigured(f"{name} must be at least {minimum:g}{upper}, not {number:g}.")
    return number


def env_list(name: str, default: Sequence[str] = ()) -> list[str]:
    """Values between commas, stripped; empty ones are left out."""
    value = env_str(name)
    if not value:
        return list(default)
    found = [part.strip() for part in value.split(",") if part.strip()]
    if not found:
        raise ImproperlyConfigured(f"{name} names nothing: {value!r}.")
    return found


def env_choice(name: str, choices: Sequence[str], default: str) -> str:
    """One of them, however it is capitalised."""
    value = env_str(name, default)
    for choice in choices:
        if choice.lower() == value.lower():
            return choice
    raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")


def env_folder(name: str, default: Path) -> Path:
    """A folder that can be written; made where it is not there."""
    value = env_str(name)
    path = Path(value).expanduser().absolute() if value else default
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"{name}: {path} cannot be made ({error.strerror}).") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"{name}: {path} cannot be written by this user.")
    return path


def env_email(name: str, default: str) -> str:
    """An address, or a name with one: `Vitrine <vitrine@example.org>`. The default is taken as it is."""
    value = env_str(name)
    if not value:
        return default
    # A mail server may have a name without a dot.
    if "\n" in value or "\r" in value or not _ADDRESS.fullmatch(parseaddr(value)[1]):
        raise ImproperlyConfigured(f"{name} must be an e-mail address, not {value!r}.")
    return value


def env_secret(name: str) -> str | None:
    """The value of NAME, or the content of the file that NAME_FILE names; None without both."""
    value, file_name = env_str(name), env_str(f"{name}_FILE")
    if value and file_name:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one.")
    if not file_name:
        return value or None
    try:
        content = Path(file_name).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error}") from None
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE names an empty file: {file_name}")
    return content


def env_secrets(name: str) -> list[str]:
    """Those between commas in NAME, or the lines of the file that NAME_FILE names; empty ones are left
    out."""
    file_name = env_str(f"{name}_FILE")
    if not file_name:
        return env_list(name)
    content = env_secret(name) or ""
    return [line.strip() for line in content.splitlines() if line.strip()]


def unread(start: str) -> dict[str, str | None]:
    """Names with this start that are set and that nothing has asked for, mistyped perhaps; each with the
    one that may have been meant. To be asked once all settings are read."""
    from difflib import get_close_matches

    names = sorted(name for name in os.environ if name.startswith(start) and name not in _asked)
    free = [name for name in _asked if name not in os.environ]
    return {name: next(iter(get_close_matches(name, free, 1, 0.8)), None) for name in names}
