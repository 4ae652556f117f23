"""Which moderation policies an answer is judged by: as they are now, without a restart."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import connection

from chat import moderating
from chat.db import in_db
from chat.gathering import Gathering
from moderation.models import EditableRule, ModerationPolicy
from moderation.policies import BadPolicy, Policy, Stage, is_for_model, parsed
from moderation.rules import BadRule, compiled

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InForce:
    """A policy and whom it is for; what is empty fits everybody."""

    id: UUID
    name: str
    version: int
    policy: Policy
    is_dry_run: bool
    tiers: frozenset[str]
    groups: frozenset[str]
    model_names: tuple[str, ...]
    key_prefixes: frozenset[str]

    def fits(self, who: "Who") -> bool:
        return (
            (not self.tiers or who.tier in self.tiers)
            and (not self.groups or not self.groups.isdisjoint(who.groups))
            and (not self.key_prefixes or who.key_prefix in self.key_prefixes)
            and is_for_model(self.model_names, who.model)
        )


@dataclass(frozen=True, slots=True)
class Who:
    """What policies are chosen by."""

    model: str
    key_prefix: str = ""
    tier: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """`deciding` is the first that fits; `trials` are in their dry run, and do nothing."""

    deciding: InForce | None = None
    trials: tuple[InForce, ...] = ()

    def judges(self, stage: Stage) -> bool:
        return any(one.policy.judges(stage) for one in self.every)

    def decides(self, stage: Stage) -> bool:
        """Whether anything may follow; what only a dry run judges, nobody waits for."""
        return self.deciding is not None and self.deciding.policy.judges(stage)

    def may_stop(self, stage: Stage) -> bool:
        return self.deciding is not None and self.deciding.policy.may_stop(stage)

    @property
    def every(self) -> tuple[InForce, ...]:
        return (*([self.deciding] if self.deciding else []), *self.trials)


NOTHING = Chosen()
# Each answer begins with it, and Django would take longer to make it than Postgres to answer.
_STAMPS = """
SELECT
    (SELECT array_agg(id::text || ' ' || version ORDER BY "order", name)
     FROM moderation_moderationpolicy WHERE is_enabled),
    (SELECT array_agg(id::text || ' ' || updated_at ORDER BY id)
     FROM moderation_editablerule WHERE is_enabled)
"""
_rules_stamp: list[str] | None = None
_known: tuple[list[str] | None, tuple[InForce, ...]] = (None, ())


async def chosen_for(user: str, model: str, key_prefix: str = "") -> Chosen:
    """Those for an answer of the model to this user (a primary key)."""
    if not moderating.is_on():
        return NOTHING
    everything = await _policies.ask(None)
    if any(one.tiers or one.groups for one in everything):
        who = await in_db(_who)(user, model, key_prefix)
    else:
        who = Who(model, key_prefix)
    fitting = [one for one in everything if one.fits(who)]
    deciding = next((one for one in fitting if not one.is_dry_run), None)
    return Chosen(deciding, tuple(one for one in fitting if one.is_dry_run))


def _who(user: str, model: str, key_prefix: str) -> Who:
    rows = get_user_model()._base_manager.filter(pk=user)
    found = list(rows.values_list("tier_id", "groups__name"))
    return Who(
        model,
        key_prefix,
        tier=found[0][0] if found else "",
        groups=tuple(name for _, name in found if name),
    )


async def _all(asked: Sequence[None]) -> list[tuple[InForce, ...]]:
    return [await in_db(_read)()] * len(asked)


def _read() -> tuple[InForce, ...]:
    """One small query where nothing has changed: each change has a version of its own."""
    global _known, _rules_stamp
    with connection.cursor() as cursor:
        cursor.execute(_STAMPS)
        stamp, rules_stamp = cursor.fetchone()
    if rules_stamp != _rules_stamp:
        _read_rules()
        _rules_stamp = rules_stamp
    if stamp != _known[0]:
        rows = ModerationPolicy.objects.filter(is_enabled=True).order_by("order", "name")
        _known = stamp, tuple(filter(None, map(_in_force, rows)))
    return _known[1]


def _read_rules() -> None:
    """The operator's rules; one that no form has seen, and that cannot be used, is left out."""
    rows = EditableRule.objects.filter(is_enabled=True).order_by("pk")
    moderating.use_rules(row.as_rule() for row in rows if _is_usable(row))


def _is_usable(row: EditableRule) -> bool:
    try:
        compiled(row.as_rule())
    except BadRule as error:
        logger.warning("the rule %s is not used: %s", row.name, error)
        return False
    return True


def _in_force(row: ModerationPolicy) -> InForce | None:
    try:
        policy = parsed(row.content)
    except BadPolicy as error:  # of a row that no form has seen
        logger.warning("the policy %s is not used: %s", row.name, error)
        return None
    return InForce(
        id=row.pk,
        name=row.name,
        version=row.version,
        policy=policy,
        is_dry_run=row.is_dry_run,
        tiers=frozenset(row.tiers),
        groups=frozenset(row.groups),
        model_names=tuple(row.model_names),
        key_prefixes=frozenset(row.key_prefixes),
    )


_policies: Gathering[None, tuple[InForce, ...]] = Gathering(_all)
