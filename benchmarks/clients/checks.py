"""What every client's script does: try one thing after the other, and tell of each in a line of JSON.

The scripts run in an environment of their own, with the clients and without Vitrine.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable

BASE_URL = os.environ["BASE_URL"]
KEY = os.environ["KEY"]
LIMITED_KEY = os.environ["LIMITED_KEY"]
"""Of a user who may ask nothing more in this minute."""
MODEL = os.environ["MODEL"]
EMBEDDING_MODEL = os.environ["EMBEDDING_MODEL"]
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Oslo"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}

_checks: list[tuple[str, Callable[[], str]]] = []


def check(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """A function that asserts, and returns what was seen."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        _checks.append((name, function))
        return function

    return register


def raises(expected: type[BaseException], call: Callable[[], object]) -> str:
    try:
        call()
    except expected as error:
        return type(error).__name__
    raise AssertionError(f"no {expected.__name__}")


def run() -> None:
    """Run all of this script's checks."""
    for name, function in _checks:
        try:
            told = {"check": name, "ok": True, "seen": function()}
        except Exception as error:
            traceback.print_exc()
            told = {"check": name, "ok": False, "seen": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
