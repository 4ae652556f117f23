"""What a directory may do with groups.

It sees all of them. It fills whichever it likes: one that an administrator has made in the console, with
what it grants, is meant to be found by name. It renames and deletes only those that it made. A group
that carries permissions for the console is none of its business: it would make administrators.
"""

from collections.abc import Callable, Iterable

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from scim2_models import (
    ForbiddenException,
    InvalidValueException,
    MutabilityException,
    UniquenessException,
)

from moderation.policy_store import rename_in_policies
from webapp.models import ScimGroup, User
from webapp.scim import resources
from webapp.scim.addresses import id_of, missing, row_id
from webapp.scim.audit import Action, Kind, note_change
from webapp.scim.people import all_people, may_be_member
from webapp.scim.texts import checked

Change = Callable[[resources.Group], resources.Group]
memberships = User.groups.through._default_manager


def all_groups() -> QuerySet[Group]:
    return Group.objects.select_related("scim")


def row_of(group: Group) -> ScimGroup | None:
    return getattr(group, "scim", None)


def facts_of(group: Group, member_ids: Iterable[int] | None) -> resources.Group:
    """`member_ids` is None where nobody asks for them."""
    row = row_of(group)
    members = None
    if member_ids is not None:
        members = [resources.Member(value=id_of("user", pk), ref=None) for pk in member_ids]
    return resources.Group(
        id=id_of("group", group.pk),
        external_id=(row and row.external_id) or None,
        display_name=group.name,
        members=members,
    )


def members_of(groups: Iterable[Group]) -> dict[int, list[int]]:
    """Ids by the id of their group; one query."""
    found: dict[int, list[int]] = {group.pk: [] for group in groups}
    pairs = memberships.filter(group_id__in=list(found)).order_by("user_id")
    for group_id, user_id in pairs.values_list("group_id", "user_id"):
        found[group_id].append(user_id)
    return found


def create_group(wanted: resources.Group) -> int:
    """The id. Raises UniquenessException, InvalidValueException, and makes nothing then."""
    name = _name_of(wanted)
    with transaction.atomic():
        if Group.objects.filter(name__iexact=name).exists():
            raise _taken()
        try:
            with transaction.atomic():
                group = Group.objects.create(name=name)
        except IntegrityError:
            raise _taken() from None
        ScimGroup.objects.create(group=group, is_made=True, external_id=_external_id(wanted))
        note_change(Action.MADE, Kind.GROUP, group.pk, name, _set_members(group, set(), wanted))
    return group.pk


def change_group(pk: int, change: Change) -> None:
    """Raises NotFoundException, ForbiddenException, UniquenessException, MutabilityException,
    InvalidValueException, and what `change` raises; nothing has changed then."""
    with transaction.atomic():
        group = _locked(pk)
        now = members_of([group])[group.pk]
        wanted = change(facts_of(group, now))
        row = row_of(group)
        if row is None:
            row = ScimGroup(group=group)
            note_change(Action.FOUND, Kind.GROUP, pk, group.name)
        told = [_set_name(group, row, wanted), _set_members(group, set(now), wanted)]
        row.external_id = _external_id(wanted)
        row.save()
        if any(told):
            change_told = "; ".join(filter(None, told))
            note_change(Action.CHANGED, Kind.GROUP, pk, group.name, change_told)


def delete_group(pk: int) -> None:
    """What it granted its members end with it. Raises NotFoundException, ForbiddenException."""
    with transaction.atomic():
        group = _locked(pk)
        row = row_of(group)
        if row is None or not row.is_made:
            raise ForbiddenException(
                detail="The directory did not make this group; it can take its members out."
            )
        note_change(Action.DELETED, Kind.GROUP, pk, group.name)
        group.delete()


# --- the steps of a change ------------------------------------------------------------------------


def _locked(pk: int) -> Group:
    group = all_groups().select_for_update(of=("self",)).filter(pk=pk).first()
    if group is None:
        raise missing("group")
    if group.permissions.exists():
        raise ForbiddenException(
            detail="This group carries permissions for the admin console; it is managed there."
        )
    return group


def _set_name(group: Group, row: ScimGroup, wanted: resources.Group) -> str:
    name = _name_of(wanted)
    if name == group.name:
        return ""
    if not row.is_made:
        raise MutabilityException(detail="A group of the console is renamed in the console.")
    if Group.objects.filter(name__iexact=name).exclude(pk=group.pk).exists():
        raise _taken()
    before, group.name = group.name, name
    try:
        with transaction.atomic():
            group.save(update_fields=["name"])
            rename_in_policies("groups", before, name, "The directory has renamed the group.")
    except IntegrityError:
        raise _taken() from None
    return f"name: {before!r} → {name!r}"


def _set_members(group: Group, now: set[int], wanted: resources.Group) -> str:
    ids = _member_ids(wanted)
    new, gone = ids - now, now - ids
    known = set(all_people().filter(may_be_member(), pk__in=new).values_list("pk", flat=True))
    if new - known:
        raise InvalidValueException(
            detail="Not users, or with an address that is not confirmed:"
            f" {', '.join(map(str, sorted(new - known)[:10]))}."
        )
    memberships.filter(group_id=group.pk, user_id__in=gone).delete()
    rows = [memberships.model(group_id=group.pk, user_id=pk) for pk in sorted(new)]
    memberships.bulk_create(rows, ignore_conflicts=True, batch_size=5000)
    words = (("members in", new), ("members out", gone))
    return "; ".join(f"{what}: {', '.join(map(str, sorted(who)))}" for what, who in words if who)


def _member_ids(wanted: resources.Group) -> set[int]:
    found: set[int] = set()
    for member in wanted.members or []:
        pk = row_id(member.value or "", "user")
        if pk is None:
            raise InvalidValueException(
                detail="A member's value must be the id of a user; groups hold no groups here."
            )
        found.add(pk)
    return found


def _name_of(wanted: resources.Group) -> str:
    name = checked(wanted.display_name, 150, "displayName")
    if not name:
        raise InvalidValueException(detail="displayName must not be empty.")
    return name


def _external_id(wanted: resources.Group) -> str:
    return checked(wanted.external_id, 255, "externalId")


def _taken() -> UniquenessException:
    return UniquenessException(detail="There is a group of that name already.")
