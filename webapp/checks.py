"""System checks, of what only the database can tell and of settings that go together."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections

_ROLE = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"


@register(Tags.database)
def row_level_security_binds_us(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """The role of DATABASE_URL must be one that row-level security applies to."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            cursor.execute(_ROLE)
            row = cursor.fetchone()
        if row and row[0]:
            found.append(
                Error(
                    "The database role bypasses row-level security.",
                    hint="Let DATABASE_URL name a role that is neither SUPERUSER nor BYPASSRLS"
                    " and owns the database: CREATE ROLE vitrine LOGIN PASSWORD '…';"
                    " ALTER DATABASE … OWNER TO vitrine;",
                    id="vitrine.E001",
                )
            )
    return found


@register(Tags.security)
def proxies_are_named(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Behind a proxy that is not believed, every visitor has its address, and all share its limits."""
    if not settings.HTTPS or settings.TRUSTED_PROXIES:
        return []
    return [
        Warning(
            "VITRINE_HTTPS is set and TRUSTED_PROXIES is not: all visitors count as one.",
            hint="Let TRUSTED_PROXIES name the address of the proxy that ends TLS: 127.0.0.1 where it"
            " runs on this machine.",
            id="vitrine.W001",
        )
    ]
