"""REST for administrators under /api/admin: everybody's usage."""

from datetime import date
from typing import Any

from django.http import HttpRequest
from ninja import Router

from chat.api_errors import ApiError
from chat.db import in_db
from chat.models import Usage
from chat.usage_api import AnyBy, checked_days, usage_value
from webapp.tenancy import as_system

router = Router()


@router.get("/admin/usage")
async def everybodys_usage(
    request: HttpRequest,
    since: date | None = None,
    until: date | None = None,
    by: AnyBy = "owner",
) -> dict[str, Any]:
    """What all answers of these days (UTC) took. For a staff member's session or key."""
    if not request.user.is_staff:
        raise ApiError(403, "not_allowed", "This is for administrators.")
    since, until = checked_days(since, until)
    return await in_db(_everybodys)(since, until, by)


def _everybodys(since: date, until: date, by: AnyBy) -> dict[str, Any]:
    with as_system():  # sums over all users, no user's content
        return usage_value(Usage.objects.all(), since, until, by)
