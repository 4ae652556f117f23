"""What OpenAI's API has and this one has not: each says so, and what is there instead."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from chat.api_errors import api_error

_ANY = ["GET", "POST", "DELETE", "PATCH", "PUT"]
_NO_SPEECH = "There is no model for speech here."
_NO_PICTURES = "There is no model for pictures here."
_MISSING = {
    "/audio/speech": _NO_SPEECH,
    "/audio/transcriptions": _NO_SPEECH,
    "/audio/translations": _NO_SPEECH,
    "/images/generations": _NO_PICTURES,
    "/images/edits": _NO_PICTURES,
    "/images/variations": _NO_PICTURES,
}


def add_missing(api: NinjaAPI) -> None:
    """Answer each with 501 and the code `not_implemented`."""
    for path, message in _MISSING.items():
        api.api_operation(_ANY, path, include_in_schema=False)(_view(message))


def _view(message: str) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest) -> HttpResponse:
        return _answer(message)

    return view


def _answer(message: str) -> HttpResponse:
    """OpenAI's clients try again whatever is 500 or more, unless they are told not to."""
    response = api_error(501, "not_implemented", message)
    response["x-should-retry"] = "false"
    return response
