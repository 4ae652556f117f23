"""Changes of policies, each with its version: what was in force when, and who had it so."""

from typing import Any, Literal

from django.db import transaction

from moderation.models import ModerationPolicy, PolicyVersion
from moderation.policies import parsed

FIELDS = (
    "name",
    "order",
    "is_enabled",
    "is_dry_run",
    "tiers",
    "groups",
    "model_names",
    "key_prefixes",
    "content",
)


class NameTaken(Exception):
    """The message says by which policy."""


def snapshot_of(policy: ModerationPolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in FIELDS}


def save_policy(policy: ModerationPolicy, author: Any = None, note: str = "") -> None:
    """Save a policy that is valid as its next version; of a new one the first.

    Two who save at once get versions one after the other, and the later one counts.
    """
    with transaction.atomic():
        before = ModerationPolicy.objects.select_for_update().filter(pk=policy.pk).first()
        policy.version = before.version + 1 if before else 1
        policy.save()
        _keep(policy, "changed" if before else "created", author, note)


def rename_in_policies(
    field: Literal["groups", "key_prefixes"], before: str, now: str, note: str
) -> None:
    """A group, or a key, goes by another name from now on: policies that are for it still are. In the
    transaction that renames it."""
    rows = ModerationPolicy.objects.select_for_update()
    for policy in rows.filter(**{f"{field}__contains": [before]}):
        names = [now if name == before else name for name in getattr(policy, field)]
        setattr(policy, field, names)
        save_policy(policy, note=note)


def delete_policy(policy: ModerationPolicy, author: Any = None, note: str = "") -> None:
    with transaction.atomic():
        _keep(policy, "deleted", author, note)
        policy.delete()


def restore(version: PolicyVersion, author: Any = None) -> ModerationPolicy:
    """Make a policy what it was, as its next version; one that was deleted is there again. Raises
    BadPolicy, for a content that is none any more, and NameTaken."""
    parsed(version.snapshot["content"])
    name = version.snapshot["name"]
    if ModerationPolicy.objects.filter(name=name).exclude(pk=version.policy_id).exists():
        raise NameTaken(f"Another policy is called {name!r} by now.")
    with transaction.atomic():
        rows = ModerationPolicy.objects.select_for_update()
        policy = rows.filter(pk=version.policy_id).first()
        if policy is None:
            policy = ModerationPolicy(pk=version.policy_id, version=version.number)
        for name in FIELDS:
            setattr(policy, name, version.snapshot[name])
        policy.version = _last_number(version) + 1
        policy.save()
        _keep(policy, "changed", author, f"As in version {version.number}.")
    return policy


def _last_number(version: PolicyVersion) -> int:
    rows = PolicyVersion.objects.filter(policy_id=version.policy_id).order_by("-number")
    return rows.values_list("number", flat=True)[0]


def _keep(policy: ModerationPolicy, change: str, author: Any, note: str) -> None:
    PolicyVersion.objects.create(
        policy_id=policy.pk,
        name=policy.name,
        number=policy.version,
        change=change,
        snapshot=snapshot_of(policy),
        author=author,
        note=note,
    )
