"""Which addresses answer errors as JSON, and in whose shape; the shapes themselves are chat's and
scim's."""

from django.http import HttpResponse

from chat.anthropic_errors import anthropic_error
from chat.api_errors import api_error, error_body
from webapp.scim import errors as scim

__all__ = ["api_error", "error_at", "error_body", "is_api_path"]

_PREFIXES = ("/v1/", "/api/", scim.PREFIX)
_ANTHROPIC = "/v1/messages"


def error_at(
    path: str, status: int, code: str, message: str, *, retry_after_s: float | None = None
) -> HttpResponse:
    """Before a view is reached: as the clients of this address read errors."""
    if scim.is_scim_path(path):
        return scim.scim_error(status, message, retry_after_s=retry_after_s)
    is_anthropic = path == _ANTHROPIC or path.startswith(f"{_ANTHROPIC}/")
    respond = anthropic_error if is_anthropic else api_error
    return respond(status, code, message, retry_after_s=retry_after_s)


def is_api_path(path: str) -> bool:
    return path.startswith(_PREFIXES) or path in ("/v1", "/api")
