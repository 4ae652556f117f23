"""The policy that an installation begins with: it notes what the heads find, and moves with them."""

from importlib import import_module

import pytest
from django.apps import apps

from moderation.first_policy import FIRST_POLICY
from moderation.heads import shipped_thresholds
from moderation.models import ModerationPolicy, PolicyVersion
from moderation.policies import parsed

migration = import_module("moderation.migrations.0006_first_policy_as_shipped")


def test_it_notes_from_where_the_heads_find_something() -> None:
    for stage in ("input", "output"):
        noted = {name: actions["note"] for name, actions in FIRST_POLICY[stage].items()}
        noted.pop("secrets", None)  # found by rules
        assert noted == pytest.approx(dict(shipped_thresholds()), abs=5e-4)
    for actions in FIRST_POLICY["input"].values():
        assert actions["note"] < actions.get("block", 1.0)
    parsed(FIRST_POLICY)


@pytest.mark.django_db
def test_a_policy_that_nobody_has_changed_moves_with_them() -> None:
    # A test that ran before may have emptied the tables, this row of the migrations' too.
    policy = ModerationPolicy.objects.first() or ModerationPolicy.objects.create(
        name="First", content=FIRST_POLICY
    )
    assert policy.content == FIRST_POLICY
    ModerationPolicy.objects.update(content=migration.BEFORE)
    mine = ModerationPolicy.objects.create(
        name="Mine", content={**migration.BEFORE, "partial_output": "remove"}
    )
    for _ in range(2):  # the second time there is nothing to do
        migration.note_as_shipped(apps, None)
    policy.refresh_from_db()
    assert (policy.content, policy.version) == (FIRST_POLICY, 2)
    version = PolicyVersion.objects.get(policy_id=policy.pk, number=2)
    assert (version.change, version.snapshot["content"]) == ("changed", FIRST_POLICY)
    mine.refresh_from_db()
    assert mine.content["partial_output"] == "remove"
    assert mine.version == 1
