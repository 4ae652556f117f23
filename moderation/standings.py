"""How somebody stands by the strikes that there are. In a scope that sees them."""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from moderation.models import Decision, Strike, Suspension
from moderation.strikes import Standing, standing


def strikes_of(user_id: int) -> list[tuple[float, datetime]]:
    """Those that count, as (points, when); what is older than ten half-lives is a thousandth of
    itself."""
    rows = Strike.objects.filter(owner=user_id, lifted_at=None, created_at__gt=_since())
    return list(rows.values_list("points", "created_at"))


def with_strikes(user_ids: Sequence[int]) -> set[int]:
    """Those of many users who have any that count, each asked about in that user's own scope."""
    with connection.cursor() as cursor:
        asked = "SELECT * FROM moderation_with_strikes(%s::bigint[], %s)"
        cursor.execute(asked, [list(user_ids), _since()])
        return {row[0] for row in cursor.fetchall()}


def struck_since_closed() -> list[int]:
    """Whose accounts are open, and have strikes that count and that no suspension has followed yet. Whom
    somebody has let in since is not among them."""
    closed = Suspension.objects.filter(
        owner=OuterRef("owner"), created_at__gt=OuterRef("created_at")
    )
    rows = Strike.objects.filter(~Exists(closed), lifted_at=None, created_at__gt=_since())
    return list(
        rows.filter(owner__is_active=True).order_by().values_list("owner", flat=True).distinct()
    )


def _since() -> datetime:
    return timezone.now() - 10 * settings.STRIKES.half_life


def standing_of(user_id: int) -> Standing:
    return standing(strikes_of(user_id), timezone.now(), settings.STRIKES)


def counting_decisions(user_id: int) -> QuerySet[Decision]:
    """Those of somebody's decisions whose strikes nobody has lifted, the latest first."""
    rows = Decision.objects.filter(owner=user_id, strike__isnull=False, strike__lifted_at=None)
    return rows.order_by("-created_at")
