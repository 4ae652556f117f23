"""The way in: the directory's token, the methods of an address, and errors in SCIM's shape.

The token is the whole proof. Sessions, API keys and access tokens of people open nothing here, and
no cookie is read, so there is nothing that a foreign page could make a browser send.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django_ratelimit.core import ALL
from pydantic import ValidationError
from scim2_models import (
    ConflictException,
    Error,
    InvalidSyntaxException,
    PayloadTooLargeException,
    SCIMException,
)

from webapp.principal import is_directory
from webapp.rate_limits import seconds_to_wait
from webapp.scim.errors import CONTENT_TYPE, scim_error
from webapp.scim.resources import POLICY
from webapp.security_events import Kind, note_event

MAX_BODY_BYTES = 4 * 2**20
"""A group of some 30,000 members; what directories send of a person is a thousandth of it."""

Handler = Callable[..., HttpResponse]
Json = dict[str, Any]

logger = logging.getLogger(__name__)


def endpoint(**handlers: Handler) -> Handler:
    """A view that asks for the token first, and then the handler of the method: GET=…, POST=…."""
    allowed = ", ".join(sorted(handlers))

    @csrf_exempt
    @login_not_required
    def view(request: HttpRequest, **ids: str) -> HttpResponse:
        handler = handlers.get(request.method or "")
        refused = _refusal(request)
        if refused is None and handler is None:
            refused = scim_error(405, f"{request.method} is not possible here; {allowed} is.")
            refused["Allow"] = allowed
        response = refused or _answer(handler, request, ids)
        response["Cache-Control"] = "no-store"
        return response

    return view


def body_of(request: HttpRequest) -> Json:
    """The JSON object that was sent. Raises PayloadTooLargeException, InvalidSyntaxException."""
    try:
        body = request.body
    except RequestDataTooBig:
        body = b" " * (MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise PayloadTooLargeException(detail=f"The body may hold {MAX_BODY_BYTES} bytes.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # what is no UTF-8 is a ValueError too
        raise InvalidSyntaxException(detail="The body is no JSON.") from None
    if not isinstance(value, dict):
        raise InvalidSyntaxException(detail="The body is no JSON object.")
    return value


def respond(value: Json, *, status: int = 200, location: str = "") -> HttpResponse:
    response = HttpResponse(json.dumps(value), status=status, content_type=CONTENT_TYPE)
    if location:
        response["Location"] = response["Content-Location"] = location
    return response


def no_content() -> HttpResponse:
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Only wrong tokens count: nobody can shut the directory out by guessing."""
    if is_directory(request.headers.get("Authorization", "")):
        return None
    wait_s = seconds_to_wait(request, "scim", method=ALL)
    if wait_s is not None:
        return scim_error(429, f"Too many attempts; wait {wait_s} s.", retry_after_s=wait_s)
    note_event(Kind.SIGN_IN_FAILED, how="token of the directory", request=request)
    return scim_error(401, "Send the token of the directory as `Authorization: Bearer …`.")


def _answer(handler: Handler | None, request: HttpRequest, ids: dict[str, str]) -> HttpResponse:
    assert handler is not None
    try:
        with POLICY:
            return handler(request, **ids)
    except SCIMException as error:
        return scim_error(error.status, error.detail, error.scim_type)
    except ValidationError as error:
        return _refuse_invalid(error)
    except RecursionError:
        return scim_error(400, "That is nested too deep.", "invalidSyntax")
    except IntegrityError:
        # What was there to refer to a moment ago is gone, or the other way round.
        logger.info("a SCIM request met another one")
        conflict = ConflictException()
        return scim_error(conflict.status, "Another change came first; try again.")


def _refuse_invalid(error: ValidationError) -> HttpResponse:
    """The first fault; what was sent is not repeated, for a password may be among it."""
    found = Error.from_validation_error(error.errors(include_url=False, include_input=False)[0])
    return scim_error(found.status or 400, found.detail or "Invalid.", found.scim_type or "")
