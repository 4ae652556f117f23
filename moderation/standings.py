"""How somebody stands by the strikes that there are. In a scope that sees them."""

from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from moderation.models import Decision, Strike
from moderation.strikes import Standing, standing


def strikes_of(user_id: int) -> list[tuple[float, datetime]]:
    """Those that count, as (points, when); what is older than ten half-lives is a thousandth of
    itself."""
    since = timezone.now() - 10 * settings.STRIKES.half_life
    rows = Strike.objects.filter(owner=user_id, lifted_at=None, created_at__gt=since)
    return list(rows.values_list("points", "created_at"))


def standing_of(user_id: int) -> Standing:
    return standing(strikes_of(user_id), timezone.now(), settings.STRIKES)


def counting_decisions(user_id: int) -> QuerySet[Decision]:
    """Those of somebody's decisions whose strikes nobody has lifted, the latest first."""
    rows = Decision.objects.filter(owner=user_id, strike__isnull=False, strike__lifted_at=None)
    return rows.order_by("-created_at")
