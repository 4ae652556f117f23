"""Pages and JSON for requests that end badly."""

import logging
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from webapp.api_errors import api_error, is_api_path

logger = logging.getLogger(__name__)

_WORDS = {
    400: ("bad_request", "The request was not understood."),
    403: ("forbidden", "You may not do this."),
    404: ("not_found", "There is nothing at this address."),
    429: ("rate_limit_exceeded", "Too many attempts. Please wait a little."),
    500: ("internal_error", "Something went wrong on our side."),
    503: ("unavailable", "The server is not available just now."),
}


def error_page(
    request: HttpRequest, status: int, message: str = "", *, code: str = ""
) -> HttpResponse:
    """The error as a page, or in OpenAI's shape under /v1 and /api."""
    default_code, default_message = _WORDS.get(status, _WORDS[400])
    message = message or default_message
    if is_api_path(request.path_info):
        return api_error(status, code or default_code, message)
    context = {"status": status, "title": HTTPStatus(status).phrase, "message": message}
    try:
        content = render_to_string("error.html", context, request)
    except Exception:
        # The page about a failure must not fail with it.
        logger.exception("the error page failed")
        return HttpResponse(f"{status} {message}", status=status, content_type="text/plain")
    return HttpResponse(content, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return error_page(request, 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return error_page(
        request,
        403,
        "This form had expired or came from elsewhere. Reload the page and try again.",
        code="csrf_failed",
    )
