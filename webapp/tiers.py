"""The tiers that every installation has."""

from typing import Any

TIERS = (
    {
        "slug": "free",
        "name": "Free",
        "requests_per_minute": 10,
        "concurrent_runs": 2,
        "tokens_per_day": 1_000_000,
        "tokens_per_month": 10_000_000,
        "upload_mib": 32,
        "weight": 1.0,
        "context_tokens": 32_768,
    },
    {
        "slug": "pro",
        "name": "Pro",
        "requests_per_minute": 60,
        "concurrent_runs": 4,
        "tokens_per_day": 10_000_000,
        "tokens_per_month": 100_000_000,
        "upload_mib": 256,
        "weight": 2.0,
        "context_tokens": 131_072,
    },
    {
        "slug": "enterprise",
        "name": "Enterprise",
        "requests_per_minute": 600,
        "concurrent_runs": 8,
        "upload_mib": 2048,
        "weight": 4.0,
    },
    {
        "slug": "admin",
        "name": "Administrator",
        "requests_per_minute": 600,
        "concurrent_runs": 8,
        "weight": 4.0,
    },
)


def ensure_tiers(model: Any) -> None:
    """Add what is missing. `model` is Tier, also in a migration's historical form."""
    known = {field.name for field in model._meta.get_fields()}
    for tier in TIERS:
        fields = {name: value for name, value in tier.items() if name in known}
        model.objects.get_or_create(slug=fields.pop("slug"), defaults=fields)
