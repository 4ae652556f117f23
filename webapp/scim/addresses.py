"""Ids of resources, and the addresses at which they are."""

import re

from django.conf import settings
from django.http import HttpRequest
from scim2_models import NotFoundException

# Of all kinds together each id is unique (RFC 7643, section 3.1): a group is never taken for a person.
LETTERS = {"user": "u", "group": "g"}
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # fits a bigint


def address_of(request: HttpRequest, path: str) -> str:
    """As the directory reaches us. Its Host header has been checked against ALLOWED_HOSTS."""
    scheme = "https" if settings.HTTPS else request.scheme
    return f"{scheme}://{request.get_host()}/scim/v2/{path}"


def id_of(kind: str, pk: int) -> str:
    return f"{LETTERS[kind]}{pk}"


def row_id(text: str, kind: str) -> int | None:
    """None for what is no id of this kind."""
    number = text.removeprefix(LETTERS[kind])
    return int(number) if number != text and _NUMBER.fullmatch(number) else None


def known_id(text: str, kind: str) -> int:
    """Raises NotFoundException."""
    found = row_id(text, kind)
    if found is None:
        raise missing(kind)
    return found


def missing(kind: str) -> NotFoundException:
    return NotFoundException(detail=f"There is no such {kind}.")
