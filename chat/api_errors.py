"""Errors in OpenAI's shape, for everything under /v1 and /api."""

from collections.abc import Mapping
from typing import Any, Protocol

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from chat.errors import ChatError
from inference import (
    BadSound,
    ContextTooLong,
    EngineError,
    InvalidParameter,
    Overloaded,
    RequestError,
    SoundTooLong,
    UnknownModel,
    UnknownSound,
    WrongKind,
)
from retrieval.errors import RetrievalError

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


class Respond(Protocol):
    """What makes a response of an error: `api_error`, or another protocol's way to say it."""

    def __call__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> HttpResponse: ...


class ApiError(Exception):
    """An answer other than success, raised by the views of the two APIs."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s


_STATUS_OF = {
    RequestError.code: 400,
    ContextTooLong.code: 400,
    InvalidParameter.code: 400,
    UnknownModel.code: 404,
    WrongKind.code: 400,
    BadSound.code: 400,
    UnknownSound.code: 415,
    SoundTooLong.code: 413,
    Overloaded.code: 503,
    "engine_closed": 503,
    "upstream_unavailable": 503,
    "upstream_busy": 429,
    "upstream_error": 502,
    "worker_died": 503,
    "content_filter": 400,
    "cooling_down": 429,
    "confirmation_needed": 400,
    "moderation_unavailable": 503,
}


def status_of(code: str) -> int:
    """The HTTP status of an engine's error, raised or in a `Failed` event."""
    return _STATUS_OF.get(code, 500)


def response_to(error: Exception, respond: Respond = api_error) -> HttpResponse:
    """What a caller is answered where this was raised; what is no answer is raised again."""
    match error:
        case ApiError():
            wait_s = error.retry_after_s
            return respond(
                error.status, error.code, str(error), param=error.param, retry_after_s=wait_s
            )
        case ChatError():
            return respond(error.status, error.code, str(error), retry_after_s=error.retry_after_s)
        case RetrievalError():
            return respond(error.status, error.code, str(error), param=error.param)
        case EngineError():
            return respond(
                status_of(error.code),
                error.code,
                str(error),
                param="model" if isinstance(error, UnknownModel) else error.param,
                retry_after_s=error.retry_after_s,
            )
        case HttpError():
            return respond(error.status_code, "invalid_request", str(error))
        case RequestDataTooBig():
            return respond(413, "request_too_large", "The request is larger than 10 MiB.")
        case ValidationError():
            param, message = problem_of(error.errors[0])
            return respond(400, "invalid_value", message, param=param)
    raise error


_ANSWERED = (
    *(ApiError, ChatError, EngineError, HttpError),
    *(RequestDataTooBig, RetrievalError, ValidationError),
)


def add_error_handlers(api: NinjaAPI, respond: Respond = api_error) -> None:
    """Make every error of an API have the one shape."""

    def handle(request: HttpRequest, error: Any) -> HttpResponse:
        return response_to(error, respond)

    for kind in _ANSWERED:
        api.add_exception_handler(kind, handle)


def problem_of(problem: Mapping[str, Any]) -> tuple[str | None, str]:
    """The field that is wrong, and how, of a problem as pydantic tells it."""
    # ninja's locations begin with where the value was: ("body", "data", "temperature").
    # A union's branches, such as "constrained-str" and "list[TextPart]", are no part of the name.
    path = [str(p) for p in problem["loc"]]
    path = path[1:] if path and path[0] in ("body", "query", "path") else path
    path = path[1:] if path and path[0] == "data" else path
    field = ".".join(part for part in path if part.isidentifier() or part.isdigit())
    message = str(problem["msg"]).removeprefix("Value error, ")
    if field:
        return field, f"{field}: {message}"
    # What is wrong with several fields together is said by the whole body, the field first.
    named, colon, _ = message.partition(": ")
    return (named if colon and named.isidentifier() else None), message
