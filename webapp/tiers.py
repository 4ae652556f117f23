"""The tiers that every installation has."""

from typing import Any

TIERS = (
    {"slug": "free", "name": "Free", "concurrent_runs": 2, "weight": 1.0},
    {"slug": "pro", "name": "Pro", "concurrent_runs": 4, "weight": 2.0},
    {"slug": "enterprise", "name": "Enterprise", "concurrent_runs": 8, "weight": 4.0},
    {"slug": "admin", "name": "Administrator", "concurrent_runs": 8, "weight": 4.0},
)


def ensure_tiers(model: Any) -> None:
    """Add what is missing. `model` is Tier, also in a migration's historical form."""
    known = {field.name for field in model._meta.get_fields()}
    for tier in TIERS:
        fields = {name: value for name, value in tier.items() if name in known}
        model.objects.get_or_create(slug=fields.pop("slug"), defaults=fields)
