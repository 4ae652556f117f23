"""The first policy notes from the probabilities from which the shipped heads find something.

These were learnt anew several times, and their thresholds moved. A policy that somebody has changed is
left alone: what it says is theirs.
"""

from typing import Any

from django.db import migrations

from moderation.first_policy import FIRST_POLICY

_NOTED_BEFORE = {
    "harassment": 0.791,
    "harassment/threatening": 0.417,
    "hate": 0.791,
    "hate/threatening": 0.484,
    "illicit": 0.791,
    "illicit/violent": 0.817,
    "self-harm": 0.791,
    "self-harm/intent": 0.779,
    "self-harm/instructions": 0.925,
    "sexual": 0.791,
    "sexual/minors": 0.534,
    "violence": 0.791,
    "violence/graphic": 0.446,
    "prompt_injection": 0.724,
    "jailbreak": 0.724,
    "secrets": 0.5,
}
_BLOCKED_BEFORE = {"illicit/violent": 0.97, "sexual/minors": 0.9, "hate/threatening": 0.97}
BEFORE: dict[str, Any] = {
    "input": {
        name: {"note": at, **({"block": _BLOCKED_BEFORE[name]} if name in _BLOCKED_BEFORE else {})}
        for name, at in _NOTED_BEFORE.items()
    },
    "output": {
        **{name: {"note": at} for name, at in _NOTED_BEFORE.items() if name != "secrets"},
        "sexual/minors": {"note": 0.534, "review": 0.9},
    },
    "on_failure": {"input": "allow", "output": "allow"},
    "partial_output": "keep",
    "strikes": {"illicit/violent": 1, "sexual/minors": 2, "hate/threatening": 1},
}


def note_as_shipped(apps: Any, schema_editor: Any) -> None:
    policies = apps.get_model("moderation", "ModerationPolicy")
    versions = apps.get_model("moderation", "PolicyVersion")
    for policy in policies.objects.filter(content=BEFORE):
        policy.content = FIRST_POLICY
        policy.version += 1
        policy.save()
        versions.objects.create(
            policy_id=policy.pk,
            name=policy.name,
            number=policy.version,
            change="changed",
            snapshot={
                "name": policy.name,
                "order": policy.order,
                "is_enabled": policy.is_enabled,
                "is_dry_run": policy.is_dry_run,
                "tiers": policy.tiers,
                "groups": policy.groups,
                "model_names": policy.model_names,
                "key_prefixes": policy.key_prefixes,
                "content": FIRST_POLICY,
            },
        )


class Migration(migrations.Migration):
    dependencies = [("moderation", "0005_decision_lists")]

    operations = [migrations.RunPython(note_as_shipped, migrations.RunPython.noop)]
