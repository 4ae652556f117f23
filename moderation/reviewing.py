"""A person's word on decisions. In the system's scope: they are other people's."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from moderation.models import Decision, Review, Strike

MAX_APPEAL_CHARS = 2_000


class CannotAppeal(Exception):
    """The message says why."""


def uphold(decisions: Iterable[Decision], reviewer: Any, notes: str | None = None) -> set[int]:
    """The decisions were right. Without `notes` those that there are stay. Returns whom it lets off
    something: nobody."""
    _decide(decisions, Review.UPHELD, reviewer, notes)
    return set()


def overturn(decisions: Iterable[Decision], reviewer: Any, notes: str | None = None) -> set[int]:
    """The decisions were wrong: what they counted against their owners counts no more. `notes` as in
    `uphold`. Returns the owners of whom something counted until now."""
    chosen = list(decisions)
    with transaction.atomic():
        _decide(chosen, Review.OVERTURNED, reviewer, notes)
        strikes = Strike.objects.select_for_update().filter(decision__in=chosen, lifted_at=None)
        owners = set(strikes.values_list("owner_id", flat=True))
        strikes.update(lifted_at=timezone.now())
    return owners


def overturned_of(owner_id: int, hashes: Sequence[str]) -> dict[str, set[str]]:
    """Of the owner's texts with these hashes, those that a reviewer saw when they found the decision
    wrong, and the categories that they were stopped for."""
    rows = Decision.objects.filter(owner=owner_id, stage="input", review=Review.OVERTURNED)
    found: dict[str, set[str]] = {}
    kept = rows.filter(text_hashes__0__in=list(hashes)).values_list("text_hashes", "reasons")
    for texts, reasons in kept:
        names = {one["category"] for one in reasons if one["action"] != "note"}
        found.setdefault((texts or [""])[0], set()).update(names)
    return found


def _decide(
    decisions: Iterable[Decision], review: Review, reviewer: Any, notes: str | None
) -> None:
    rows = Decision.objects.filter(pk__in=[one.pk for one in decisions])
    changes: dict[str, Any] = {
        "review": review,
        "reviewer": reviewer,
        "reviewed_at": timezone.now(),
    }
    rows.update(**changes | ({} if notes is None else {"notes": notes}))


def label(decision: Decision, labels: Sequence[str] | None) -> None:
    """What the text really holds; None: nobody has said."""
    Decision.objects.filter(pk=decision.pk).update(labels=None if labels is None else list(labels))


def appeal(decision: Decision, text: str) -> None:
    """Its owner asks for a look at it. Once. Raises CannotAppeal."""
    text = text.strip()
    if not text or len(text) > MAX_APPEAL_CHARS:
        raise CannotAppeal(f"An appeal has 1 to {MAX_APPEAL_CHARS:,} characters.")
    rows = Decision.objects.filter(pk=decision.pk, appealed_at=None, is_dry_run=False)
    rows = rows.filter(action__in=("redact", "ask", "block"))
    if not rows.update(appeal=text, appealed_at=timezone.now(), review=Review.OPEN):
        raise CannotAppeal("This was appealed before, or stopped nothing.")


def labelled() -> Iterable[dict[str, Any]]:
    """What reviewers have found of kept texts, as `evaluation.read_cases` reads it."""
    rows = Decision.objects.exclude(text="").exclude(labels=None).order_by("created_at")
    for text, labels in rows.values_list("text", "labels").iterator():
        yield {"text": text, "categories": labels}
