"""JSON as its standard has it: Python's reader takes NaN and 1e400 along, which nobody else can read."""

import json
from math import isfinite
from typing import Any, NoReturn


def read_json(text: str | bytes) -> Any:
    """Raises ValueError, and RecursionError for what is nested too deep."""
    return json.loads(text, parse_float=_finite, parse_constant=_refuse)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
"""For what begins a longer text."""
