"""Pages and JSON for requests that end badly."""

import logging
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.api_errors import error_at, is_api_path

logger = logging.getLogger(__name__)

_WORDS = {
    400: ("bad_request", _("The request was not understood.")),
    403: ("forbidden", _("You may not do this.")),
    404: ("not_found", _("There is nothing at this address.")),
    429: ("rate_limit_exceeded", _("Too many attempts. Please wait a little.")),
    500: ("internal_error", _("Something went wrong on our side.")),
    503: ("unavailable", _("The server is not available just now.")),
}


def error_page(
    request: HttpRequest, status: int, message: str = "", *, code: str = ""
) -> HttpResponse:
    """The error as a page, or under /v1 and /api as clients of the address read errors."""
    default_code, default_message = _WORDS.get(status, _WORDS[400])
    message = str(message or default_message)
    if is_api_path(request.path_info):
        return error_at(request.path_info, status, code or default_code, message)
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
        gettext("This form had expired or came from elsewhere. Reload the page and try again."),
        code="csrf_failed",
    )
