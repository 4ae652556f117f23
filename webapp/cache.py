"""How values are written into Redis."""

import json
from typing import Any


class JsonSerializer:
    """JSON instead of Django's pickle: whoever can write to Redis must not be able to run code.

    A value that JSON does not know raises TypeError. Integers stay bare, so that Redis can count.
    """

    def dumps(self, value: Any) -> int | bytes:
        if type(value) is int:
            return value
        return json.dumps(value, separators=(",", ":")).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)
