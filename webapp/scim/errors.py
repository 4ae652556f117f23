"""Errors as a directory reads them (RFC 7644, section 3.12)."""

import json

from django.http import HttpResponse

CONTENT_TYPE = "application/scim+json"
PREFIX = "/scim/"
_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


def is_scim_path(path: str) -> bool:
    return path.startswith(PREFIX)


def scim_error(
    status: int, detail: str, scim_type: str = "", *, retry_after_s: float | None = None
) -> HttpResponse:
    """`scim_type` is one of the keywords of RFC 7644, table 9, or empty."""
    body = {"schemas": [_SCHEMA], "status": str(status), "detail": detail}
    if scim_type:
        body["scimType"] = scim_type
    # In ASCII: a detail may quote what was sent, half a character included.
    response = HttpResponse(json.dumps(body), status=status, content_type=CONTENT_TYPE)
    if retry_after_s is not None:
        response["Retry-After"] = str(max(1, round(retry_after_s)))
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="SCIM"'
    return response
