"""How bodies of /v1 and /api are read: as JSON, which knows neither NaN nor infinite numbers."""

import json
import math
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """Raises as `read_json` does."""
        return read_json(request.body)


def read_json(text: bytes) -> Any:
    """Python's reader takes NaN and 1e400 along; the database, and whoever reads the answer, do not.

    Raises ValueError, and RecursionError for what is nested too deep.
    """
    return json.loads(text, parse_float=_finite, parse_constant=_refuse)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
