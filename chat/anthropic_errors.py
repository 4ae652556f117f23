"""Errors in Anthropic's shape: {"type": "error", "error": {"type", "message"}}."""

from typing import Any

from django.http import HttpResponse, JsonResponse

from chat.api_errors import api_error

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def error_body(status: int, code: str, message: str, *, param: str | None = None) -> dict[str, Any]:
    """The code and the parameter, which Anthropic's errors have no place for, are ours beside it."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    error = {"type": kind, "message": message, "code": code, "param": param}
    return {"type": "error", "error": error}


def anthropic_error(
    status: int,
    code: str,
    message: str,
    *,
    param: str | None = None,
    retry_after_s: float | None = None,
) -> HttpResponse:
    """With the headers of `api_error`."""
    response = JsonResponse(error_body(status, code, message, param=param), status=status)
    same = api_error(status, code, message, retry_after_s=retry_after_s)
    for name in ("WWW-Authenticate", "Retry-After"):
        if name in same.headers:
            response[name] = same[name]
    return response
