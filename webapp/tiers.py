"""The tiers that every installation has."""

from typing import Any

TIERS = (
    {"slug": "free", "name": "Free", "concurrent_runs": 2},
    {"slug": "pro", "name": "Pro", "concurrent_runs": 4},
    {"slug": "enterprise", "name": "Enterprise", "concurrent_runs": 8},
    {"slug": "admin", "name": "Administrator", "concurrent_runs": 8},
)


def ensure_tiers(model: Any) -> None:
    """Add what is missing. `model` is Tier, also in a migration's historical form."""
    for tier in TIERS:
        fields = dict(tier)
        model.objects.get_or_create(slug=fields.pop("slug"), defaults=fields)
