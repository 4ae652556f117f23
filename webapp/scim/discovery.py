"""What this service is and can do (RFC 7644, section 4)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    ChangePassword,
    Context,
    ETag,
    Filter,
    ForbiddenException,
    Meta,
    Mutability,
    NotFoundException,
    NotImplementedException,
    Patch,
    Reference,
    Resource,
    Schema,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
)

from webapp.scim.addresses import address_of
from webapp.scim.door import Json, respond
from webapp.scim.resources import Group, User
from webapp.scim.search import MAX_COUNT

_LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_CONFIG = ServiceProviderConfig(
    patch=Patch(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=MAX_COUNT),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=True),
    etag=ETag(supported=False),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="Bearer token",
            description="VITRINE_SCIM_TOKEN, as `Authorization: Bearer …` (RFC 6750).",
            spec_uri=Reference("https://www.rfc-editor.org/info/rfc6750"),
            primary=True,
        )
    ],
)
PROVIDER = ScimProvider(models=[User, Group], config=_CONFIG)
_OURS = ("type", "primary")


def _published() -> tuple[Schema, ...]:
    """The one address of an account is for work, and primary, whatever else was sent of it."""
    for schema in PROVIDER.schemas:
        emails = [one for one in schema.attributes or () if one.name == "emails"]
        for part in (part for one in emails for part in one.sub_attributes or ()):
            if part.name in _OURS:
                part.mutability = Mutability.read_only
    return PROVIDER.schemas


_SCHEMAS = _published()


def service_provider_config(request: HttpRequest) -> HttpResponse:
    _refuse_filter(request)
    return respond(_value(request, _CONFIG, "ServiceProviderConfig", ""))


def resource_types(request: HttpRequest) -> HttpResponse:
    return _list(request, PROVIDER.resource_types, "ResourceType", "ResourceTypes")


def resource_type(request: HttpRequest, key: str) -> HttpResponse:
    return _one(request, PROVIDER.resource_types, key, "ResourceType", "ResourceTypes")


def schemas(request: HttpRequest) -> HttpResponse:
    return _list(request, _SCHEMAS, "Schema", "Schemas")


def schema(request: HttpRequest, key: str) -> HttpResponse:
    return _one(request, _SCHEMAS, key, "Schema", "Schemas")


def not_there(request: HttpRequest, **_: str) -> HttpResponse:
    raise NotFoundException(detail="There is nothing at this address.")


def not_possible(request: HttpRequest, **_: str) -> HttpResponse:
    """/Bulk, /Me (the token is nobody's), and people and groups in one list (RFC 7644, sections 3.7,
    3.11 and 3.4.2.1)."""
    raise NotImplementedException(
        detail="This service has no /Bulk, no /Me and no /.search for all kinds at once."
    )


def _list(
    request: HttpRequest, found: tuple[Resource[Any], ...], kind: str, at: str
) -> HttpResponse:
    _refuse_filter(request)
    values = [_value(request, one, kind, at) for one in found]
    num = len(values)
    return respond(
        {
            "schemas": [_LIST],
            "totalResults": num,
            "startIndex": 1,
            "itemsPerPage": num,
            "Resources": values,
        }
    )


def _one(
    request: HttpRequest, found: tuple[Resource[Any], ...], key: str, kind: str, at: str
) -> HttpResponse:
    _refuse_filter(request)
    for one in found:
        if str(one.id or getattr(one, "name", "")) == key:
            return respond(_value(request, one, kind, at))
    raise NotFoundException(detail=f"There is no such {kind}.")


def _value(request: HttpRequest, one: Resource[Any], kind: str, at: str) -> Json:
    path = f"{at}/{one.id or getattr(one, 'name', '')}" if at else kind
    # A copy: these are of the whole process, and the address is of the request.
    copy = one.model_copy(
        update={"meta": Meta(resource_type=kind, location=address_of(request, path))}
    )
    return copy.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE)


def _refuse_filter(request: HttpRequest) -> None:
    """RFC 7644, section 4: it would hide what the service is."""
    if "filter" in request.GET:
        raise ForbiddenException(detail="There is no filter here.")
