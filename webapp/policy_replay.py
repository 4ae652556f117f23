"""What a policy would have done with texts of the last days, by the scores that they had."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db.models import QuerySet

from moderation.models import Decision, ModerationPolicy
from moderation.policies import Action, Judged, Policy, Reason, Stage, is_for_model, rank, replayed
from webapp.models import ApiKey, User
from webapp.tenancy import as_system

NUM_TEXTS = 500
NUM_LOOKED_AT = 20_000  # where a policy is for models that are seldom asked


@dataclass(frozen=True, slots=True)
class Row:
    """A text that would have fared otherwise. `text` is there where a person may look at it anyway."""

    at: datetime
    stage: str
    was: Action
    would_be: Action
    reason: Reason | None
    text: str


@dataclass(frozen=True, slots=True)
class Replay:
    num_texts: int
    num_same: int
    num_stricter: int
    num_laxer: int
    categories: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]


def replay(
    policy: Policy, whom: ModerationPolicy, *, stage: str = "", shows_texts: bool = False
) -> Replay:
    """Of the newest NUM_TEXTS, of a stage or of all, that a policy in force has judged, of those for
    whom `whom` is. With `shows_texts` those that were kept are told, to who may review them."""
    with as_system():  # everybody's scores; of texts only what waits for reviewers
        recent = _of(whom, Decision.objects.filter(is_dry_run=False).exclude(scores={}))
        recent = recent.filter(stage=stage) if stage else recent
        newest = recent.order_by("-created_at")[:NUM_LOOKED_AT].iterator(chunk_size=NUM_TEXTS)
        fitting = (row for row in newest if is_for_model(whom.model_names, row.model))
        decisions = {str(row.pk): row for row in islice(fitting, NUM_TEXTS)}
    past = [
        Judged(pk, _stage(row), row.scores, _action(row), bool(row.failed))
        for pk, row in decisions.items()
    ]
    differences = replayed(policy, past)
    rows = []
    categories: Counter[str] = Counter()
    for one in differences:
        row = decisions[one.id]
        reason = one.would_be.reasons[0] if one.would_be.reasons else None
        categories[reason.category if reason else _category(row)] += 1
        rows.append(
            Row(
                row.created_at,
                row.stage,
                one.was,
                one.would_be.action,
                reason,
                row.text[:300] if shows_texts else "",
            )
        )
    num_stricter = sum(one.is_stricter for one in differences)
    return Replay(
        num_texts=len(past),
        num_same=len(past) - len(differences),
        num_stricter=num_stricter,
        num_laxer=len(differences) - num_stricter,
        categories=tuple(categories.most_common()),
        rows=tuple(rows),
    )


def _of(whom: ModerationPolicy, decisions: QuerySet[Decision]) -> QuerySet[Decision]:
    """By the tier and the groups that people have now."""
    if whom.tiers:
        decisions = decisions.filter(owner__tier__in=whom.tiers)
    if whom.groups:
        people = User.objects.filter(groups__name__in=whom.groups)
        decisions = decisions.filter(owner__in=people)
    if whom.key_prefixes:
        keys = ApiKey.objects.filter(prefix__in=whom.key_prefixes)
        decisions = decisions.filter(api_key_id__in=keys.values("pk"))
    return decisions


def _stage(row: Decision) -> Stage:
    stage: Stage = row.stage  # type: ignore[assignment]
    return stage


def _action(row: Decision) -> Action:
    """What its policy said, and not what took its place: where nothing can be taken out, or nobody be
    asked, is the same with another policy."""
    done: Action = row.action  # type: ignore[assignment]
    if not any(one.get("wanted") for one in row.reasons):
        return done
    return max((one.get("wanted") or one["action"] for one in row.reasons), key=rank)


def _category(row: Decision) -> str:
    return row.reasons[0]["category"] if row.reasons else ""
