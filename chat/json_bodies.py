"""How bodies of /v1 and /api are read: as JSON, which knows neither NaN nor infinite numbers."""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from inference import read_json as read_json


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """Raises as `read_json` does."""
        return read_json(request.body)
