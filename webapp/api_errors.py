"""Which addresses answer errors in OpenAI's shape; the shape itself is chat's."""

from chat.api_errors import api_error, error_body

__all__ = ["api_error", "error_body", "is_api_path"]

_PREFIXES = ("/v1/", "/api/")


def is_api_path(path: str) -> bool:
    return path.startswith(_PREFIXES) or path in ("/v1", "/api")
