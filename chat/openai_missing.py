"""What OpenAI's API has and this one has not: each says so, and what is there instead."""

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from chat.api_errors import api_error
from chat.missing_families import MISSING_FAMILIES

_ANY = ["GET", "POST", "DELETE", "PATCH", "PUT"]
_WHERE_AN_ID_COULD_STAND = {
    "/responses/compact": "Responses are not shortened here; say it anew in fewer words.",
}
_MISSING = {
    "/images/variations": "Pictures are not varied here; /v1/images/edits makes new ones of them.",
    "/chat/completions/{path:rest}": "Chat completions are not kept here; /v1/responses are.",
}


def add_missing_first(api: NinjaAPI) -> None:
    """Those that would be taken for somebody's id; before what has ids there."""
    _add(api, _WHERE_AN_ID_COULD_STAND)


def add_missing(api: NinjaAPI) -> None:
    """All others; behind what there is, which is looked for one path after the other."""
    of_families = {
        f"/{name}{rest}": message
        for name, message in MISSING_FAMILIES.items()
        for rest in ("", "/{path:rest}")
    }
    _add(api, _MISSING | of_families)


def _add(api: NinjaAPI, missing: Mapping[str, str]) -> None:
    """Answer each with 501 and the code `not_implemented`."""
    for path, message in missing.items():
        view = _view_below(message) if path.endswith("{path:rest}") else _view(message)
        api.api_operation(_ANY, path, include_in_schema=False)(view)


def _view(message: str) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest) -> HttpResponse:
        return _answer(message)

    return view


def _view_below(message: str) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest, rest: str) -> HttpResponse:
        return _answer(message)

    return view


def _answer(message: str) -> HttpResponse:
    """OpenAI's clients try again whatever is 500 or more, unless they are told not to."""
    response = api_error(501, "not_implemented", message)
    response["x-should-retry"] = "false"
    return response
