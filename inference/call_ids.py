"""Names of calls that every model takes: Mistral's want nine letters and digits, wherever they run."""

import re
from base64 import b32encode
from hashlib import blake2b
from typing import Any

_NINE = re.compile("[a-zA-Z0-9]{9}")


def short_id(call_id: str) -> str:
    """The same for the same one, so that a prompt always begins as it did."""
    if _NINE.fullmatch(call_id):
        return call_id
    digest = blake2b(call_id.encode(errors="replace"), digest_size=6).digest()
    return b32encode(digest).decode()[:9]


def with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose calls, or whose result, are named so."""
    if isinstance(answered := message.get("tool_call_id"), str):
        message = {**message, "tool_call_id": short_id(answered)}
    if not (calls := message.get("tool_calls")):
        return message
    named = [
        {**call, "id": short_id(call["id"])} if isinstance(call.get("id"), str) else call
        for call in calls
    ]
    return {**message, "tool_calls": named}
