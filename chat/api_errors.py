"""Errors in OpenAI's shape, for everything under /v1 and /api."""

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from chat.errors import ChatError
from inference import (
    ContextTooLong,
    EngineError,
    InvalidParameter,
    Overloaded,
    RequestError,
    UnknownModel,
    WrongKind,
)

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def error_body(status: int, code: str, message: str, *, param: str | None = None) -> dict[str, Any]:
    """`{"error": {"message", "type", "code", "param"}}`; the type follows from the status."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "code": code, "param": param}}


def api_error(
    status: int,
    code: str,
    message: str,
    *,
    param: str | None = None,
    retry_after_s: float | None = None,
) -> JsonResponse:
    response = JsonResponse(error_body(status, code, message, param=param), status=status)
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if retry_after_s is not None:
        response["Retry-After"] = str(max(1, round(retry_after_s)))
    return response


class ApiError(Exception):
    """An answer other than success, raised by the views of the two APIs."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


_STATUS_OF = {
    RequestError.code: 400,
    ContextTooLong.code: 400,
    InvalidParameter.code: 400,
    UnknownModel.code: 404,
    WrongKind.code: 400,
    Overloaded.code: 503,
    "engine_closed": 503,
    "upstream_unavailable": 503,
    "upstream_busy": 429,
    "upstream_error": 502,
    "worker_died": 503,
}


def status_of(code: str) -> int:
    """The HTTP status of an engine's error, raised or in a `Failed` event."""
    return _STATUS_OF.get(code, 500)


def add_error_handlers(api: NinjaAPI) -> None:
    """Make every error of an API have the one shape."""

    @api.exception_handler(ApiError)
    def _(request: HttpRequest, error: ApiError) -> HttpResponse:
        return api_error(error.status, error.code, str(error), param=error.param)

    @api.exception_handler(ChatError)
    def _(request: HttpRequest, error: ChatError) -> HttpResponse:
        return api_error(error.status, error.code, str(error), retry_after_s=error.retry_after_s)

    @api.exception_handler(EngineError)
    def _(request: HttpRequest, error: EngineError) -> HttpResponse:
        return api_error(
            status_of(error.code),
            error.code,
            str(error),
            param="model" if isinstance(error, UnknownModel) else error.param,
            retry_after_s=error.retry_after_s,
        )

    @api.exception_handler(HttpError)
    def _(request: HttpRequest, error: HttpError) -> HttpResponse:
        return api_error(error.status_code, "invalid_request", str(error))

    @api.exception_handler(RequestDataTooBig)
    def _(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
        return api_error(413, "request_too_large", "The request is larger than 10 MiB.")

    @api.exception_handler(ValidationError)
    def _(request: HttpRequest, error: ValidationError) -> HttpResponse:
        param, message = _first_problem(error)
        return api_error(400, "invalid_value", message, param=param)


def _first_problem(error: ValidationError) -> tuple[str | None, str]:
    """The field that is wrong, and how."""
    problem = error.errors[0]
    # ninja's locations begin with where the value was: ("body", "data", "temperature").
    # A union's branches, such as "constrained-str" and "list[TextPart]", are no part of the name.
    path = [str(p) for p in problem["loc"] if p not in ("body", "query", "path", "data")]
    field = ".".join(part for part in path if part.isidentifier() or part.isdigit())
    message = str(problem["msg"]).removeprefix("Value error, ")
    return (field, f"{field}: {message}") if field else (None, message)
