"""What a person and a group are to a directory: the attributes that Vitrine keeps, and no others.

Their names are those of RFC 7643, sections 4.1 and 4.2; /Schemas tells of these alone. What else a
directory sends (titles, telephone numbers, passwords, rights) is read over, as RFC 7643, section 2.1
allows: no attribute leads to a tier, a right or a password, because none is here.
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import (
    URN,
    CaseExact,
    ComplexAttribute,
    Mutability,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    Uniqueness,
)

# What Microsoft Entra sends beyond the letter of RFC 7644, and what every directory sends beyond ours.
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class Name(ComplexAttribute):
    given_name: str | None = None
    family_name: str | None = None


class Email(ComplexAttribute):
    """Of which an account has one: `type` and `primary` choose it, and are then ours."""

    # Not pydantic's EmailStr, which refuses names of inner networks (.local).
    value: Annotated[str | None, Required.true] = None
    type: str | None = None
    primary: bool | None = None


class Membership(ComplexAttribute):
    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    ref: Annotated[Reference["Group"] | None, Mutability.read_only] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    display: Annotated[str | None, Mutability.read_only] = None


class Member(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )


class User(Resource[Any]):
    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    Name: ClassVar[type[ComplexAttribute]] = Name
    display_name: str | None = None
    # Required, for every account is active or not, and has an address: neither can be taken away.
    # Who sends none of them is forgiven (`with_defaults`).
    active: Annotated[bool | None, Required.true] = None
    emails: Annotated[list[Email] | None, Required.true] = None
    Emails: ClassVar[type[ComplexAttribute]] = Email
    groups: Annotated[list[Membership] | None, Mutability.read_only] = None
    Groups: ClassVar[type[ComplexAttribute]] = Membership


class Group(Resource[Any]):
    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true, Uniqueness.server] = None
    members: list[Member] | None = None
    Members: ClassVar[type[ComplexAttribute]] = Member


def with_defaults(body: dict[str, Any], before: User | None) -> dict[str, Any]:
    """The body of a POST, or of a PUT to what is `before`, with what every account has."""
    given = {key.lower(): value for key, value in body.items()}
    added: dict[str, Any] = {}
    if given.get("active") is None:
        added["active"] = before.active if before else True
    if not given.get("emails"):
        added["emails"] = [{"value": _address(given, before), "type": "work", "primary": True}]
    kept = {key: value for key, value in body.items() if key.lower() not in added}
    return {**kept, **added}


def _address(given: dict[str, Any], before: User | None) -> Any:
    return before.emails[0].value if before and before.emails else given.get("username")
