"""Pages and JSON for requests that end badly."""

import logging

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.api_errors import error_at, is_api_path

logger = logging.getLogger(__name__)

_WORDS = {
    400: ("bad_request", _("Not understood"), _("The request was not understood.")),
    401: ("unauthorized", _("Sign-in failed"), _("You are not signed in.")),
    403: ("forbidden", _("Not allowed"), _("You may not do this.")),
    404: ("not_found", _("Nothing here"), _("There is nothing at this address.")),
    413: (
        "request_too_large",
        _("Too much at once"),
        _("What you sent is larger than 10 MiB, which is the most that a form may hold."),
    ),
    429: (
        "rate_limit_exceeded",
        _("A little too fast"),
        _("Too many attempts. Please wait a little."),
    ),
    500: ("internal_error", _("That went wrong"), _("Something went wrong on our side.")),
    503: ("unavailable", _("Not available"), _("The server is not available just now.")),
}
"""Status -> code for programs, title and sentence for people."""


def error_page(
    request: HttpRequest,
    status: int,
    message: str = "",
    *,
    code: str = "",
    leads_back: bool = False,
) -> HttpResponse:
    """The error as a page, or under /v1 and /api as clients of the address read errors. One that leads
    back has a button to the form that was sent."""
    default_code, title, default_message = _WORDS.get(status, _WORDS[400])
    message = str(message or default_message)
    if is_api_path(request.path_info):
        return error_at(request.path_info, status, code or default_code, message)
    context = {"status": status, "title": title, "message": message, "leads_back": leads_back}
    try:
        content = render_to_string("error.html", context, request)
    except Exception:
        # The page about a failure must not fail with it.
        logger.exception("the error page failed")
        return HttpResponse(f"{status} {message}", status=status, content_type="text/plain")
    return HttpResponse(content, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig):
        return error_page(request, 413, leads_back=True)
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
        gettext(
            "This form had expired or came from elsewhere. Go back: what you wrote is still there. Copy"
            " it, reload the page, and send it again."
        ),
        code="csrf_failed",
        leads_back=True,
    )
