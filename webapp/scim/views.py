"""/Users and /Groups: each reads what was sent, calls one function of `people` or `groups`, and shows
what there is now."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.contrib.auth.models import Group
from django.db.models import CharField, F, Prefetch, QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from scim2_models import Context, Meta, PatchOp, Reference, ResponseParameters

from webapp.models import User
from webapp.scim import groups, people, resources
from webapp.scim.addresses import address_of, id_of, known_id, missing
from webapp.scim.door import Json, body_of, no_content, respond
from webapp.scim.search import Column, Columns, Links, Page, id_column, page_of, query_of

_LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
Kind = TypeVar("Kind", resources.User, resources.Group)


def _row_text(name: str) -> Coalesce:
    return Coalesce(F(f"scim__{name}"), Value(""), output_field=CharField())


_THROUGH = User.groups.through
_USER_NAME = Coalesce(F("scim__user_name"), F("email"), output_field=CharField())
_OF_USERS: Columns = {
    "id": id_column("user"),
    "username": Column(_USER_NAME, "text"),
    "externalid": Column(_row_text("external_id"), "exact"),
    "displayname": Column(F("name"), "text"),
    "name.givenname": Column(_row_text("given_name"), "text"),
    "name.familyname": Column(_row_text("family_name"), "text"),
    "active": Column(F("is_active"), "flag"),
    "emails.value": Column(F("email"), "text"),
    "emails.type": Column(Value("work"), "text"),
    "emails.primary": Column(Value(True), "flag"),
    "groups.value": Links(_THROUGH, "user_id", "group_id", "group"),
}
_OF_GROUPS: Columns = {
    "id": id_column("group"),
    "externalid": Column(_row_text("external_id"), "exact"),
    "displayname": Column(F("name"), "text"),
    "members.value": Links(_THROUGH, "group_id", "user_id", "user"),
}

# --- /Users ---------------------------------------------------------------------------------------


def list_users(request: HttpRequest) -> HttpResponse:
    return _list_users(request, query_of(request, resources.User))


def search_users(request: HttpRequest) -> HttpResponse:
    return _list_users(request, query_of(request, resources.User, body_of(request)))


def create_user(request: HttpRequest) -> HttpResponse:
    body = resources.with_defaults(body_of(request), None)
    wanted = resources.User.model_validate(body, scim_ctx=Context.RESOURCE_CREATION_REQUEST)
    pk = people.create_person(wanted)
    return _show_user(request, pk, status=201)


def get_user(request: HttpRequest, key: str) -> HttpResponse:
    return _show_user(request, known_id(key, "user"))


def replace_user(request: HttpRequest, key: str) -> HttpResponse:
    pk = known_id(key, "user")
    body = body_of(request)

    def change(before: resources.User) -> resources.User:
        return _replaced(resources.User, resources.with_defaults(body, before), before)

    people.change_person(pk, change)
    return _show_user(request, pk)


def patch_user(request: HttpRequest, key: str) -> HttpResponse:
    pk = known_id(key, "user")
    people.change_person(pk, _patched(resources.User, request))
    return _show_user(request, pk)


def delete_user(request: HttpRequest, key: str) -> HttpResponse:
    people.delete_person(known_id(key, "user"))
    return no_content()


def _list_users(request: HttpRequest, query: Any) -> HttpResponse:
    page = page_of(_with_groups(people.all_people()), query, _OF_USERS)
    return _list(page, [_user(request, user, query) for user in page.rows])


def _show_user(request: HttpRequest, pk: int, *, status: int = 200) -> HttpResponse:
    user = _with_groups(people.all_people()).filter(pk=pk).first()
    if user is None:
        raise missing("user")
    value = _user(request, user, _parameters(request, resources.User))
    return respond(value, status=status, location=_at(request, "User", pk))


def _with_groups(users: QuerySet[User]) -> QuerySet[User]:
    """One more query for a whole page."""
    return users.prefetch_related(Prefetch("groups", Group.objects.order_by("name")))


def _user(request: HttpRequest, user: User, parameters: Any) -> Json:
    value = people.facts_of(user)
    value.meta = Meta(
        resource_type="User",
        created=user.date_joined,
        location=_at(request, "User", user.pk),
    )
    value.groups = [
        resources.Membership(
            value=id_of("group", group.pk),
            ref=Reference(_at(request, "Group", group.pk)),
            display=group.name,
        )
        for group in user.groups.all()
    ] or None
    return _dumped(value, parameters)


# --- /Groups --------------------------------------------------------------------------------------


def list_groups(request: HttpRequest) -> HttpResponse:
    return _list_groups(request, query_of(request, resources.Group))


def search_groups(request: HttpRequest) -> HttpResponse:
    return _list_groups(request, query_of(request, resources.Group, body_of(request)))


def create_group(request: HttpRequest) -> HttpResponse:
    wanted = resources.Group.model_validate(
        body_of(request), scim_ctx=Context.RESOURCE_CREATION_REQUEST
    )
    pk = groups.create_group(wanted)
    return _show_group(request, pk, status=201)


def get_group(request: HttpRequest, key: str) -> HttpResponse:
    return _show_group(request, known_id(key, "group"))


def replace_group(request: HttpRequest, key: str) -> HttpResponse:
    pk = known_id(key, "group")
    body = body_of(request)
    groups.change_group(pk, lambda before: _replaced(resources.Group, body, before))
    return _show_group(request, pk)


def patch_group(request: HttpRequest, key: str) -> HttpResponse:
    """No content, unless attributes are asked for: a group may have thousands of members."""
    pk = known_id(key, "group")
    groups.change_group(pk, _patched(resources.Group, request))
    return _show_group(request, pk) if "attributes" in request.GET else no_content()


def delete_group(request: HttpRequest, key: str) -> HttpResponse:
    groups.delete_group(known_id(key, "group"))
    return no_content()


def _list_groups(request: HttpRequest, query: Any) -> HttpResponse:
    page = page_of(groups.all_groups(), query, _OF_GROUPS)
    members = groups.members_of(page.rows) if _wants_members(query) else {}
    values = [_group(request, one, members.get(one.pk), query) for one in page.rows]
    return _list(page, values)


def _show_group(request: HttpRequest, pk: int, *, status: int = 200) -> HttpResponse:
    parameters = _parameters(request, resources.Group)
    group = groups.all_groups().filter(pk=pk).first()
    if group is None:
        raise missing("group")
    members = groups.members_of([group])[pk] if _wants_members(parameters) else None
    value = _group(request, group, members, parameters)
    return respond(value, status=status, location=_at(request, "Group", pk))


def _wants_members(parameters: Any) -> bool:
    def names(paths: Iterable[Any] | None) -> bool:
        return any("members" in str(path).lower() for path in paths or ())

    if parameters.attributes:
        return names(parameters.attributes)
    return not names(parameters.excluded_attributes)


def _group(request: HttpRequest, group: Group, members: list[int] | None, parameters: Any) -> Json:
    value = groups.facts_of(group, members)
    for one in value.members or ():
        one.ref = Reference(address_of(request, f"Users/{one.value}"))
    row = groups.row_of(group)
    value.meta = Meta(
        resource_type="Group",
        created=row.created_at if row else None,
        location=_at(request, "Group", group.pk),
    )
    return _dumped(value, parameters)


# --- both -----------------------------------------------------------------------------------------


def _replaced(kind: type[Kind], body: Json, before: Kind) -> Kind:
    wanted = kind.model_validate(body, scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST)
    wanted.replace(before)
    return wanted


def _patched(kind: type[Kind], request: HttpRequest) -> Callable[[Kind], Kind]:
    of_kind: Any = PatchOp.__class_getitem__(kind)
    patch = of_kind.model_validate(body_of(request), scim_ctx=Context.RESOURCE_PATCH_REQUEST)

    def change(before: Kind) -> Kind:
        patch.patch(before)
        return before

    return change


def _at(request: HttpRequest, kind: str, pk: int) -> str:
    return address_of(request, f"{kind}s/{id_of(kind.lower(), pk)}")


def _parameters(request: HttpRequest, kind: type[Any]) -> Any:
    names = ("attributes", "excludedAttributes")
    wanted = {name: request.GET[name] for name in names if name in request.GET}
    of_kind: Any = ResponseParameters.__class_getitem__(kind)
    return of_kind.model_validate(wanted)


def _dumped(value: resources.User | resources.Group, parameters: Any) -> Json:
    return value.model_dump(
        scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=parameters
    )


def _list(page: Page, values: list[Json]) -> HttpResponse:
    return respond(
        {
            "schemas": [_LIST],
            "totalResults": page.total,
            "startIndex": page.start,
            "itemsPerPage": len(values),
            "Resources": values,
        }
    )
